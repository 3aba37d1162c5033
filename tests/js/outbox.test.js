// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { Outbox, Requests } from "../../static/js/widget/outbox.js";
import { Keep } from "../../static/js/widget/storage.js";
import { storage } from "./storage.js";

/** @param {string} id @param {object} [more] @returns {import("../../static/js/widget/outbox.js").Letter} */
const letter = (id, more = {}) => ({ id, text: `text ${id}`, at: 1, who: "", customer: null, conversation: null, error: null, ...more });
/** @param {Outbox} outbox */
const ids = (outbox) => outbox.all().map(({ id }) => id);
const tab = (browser = storage()) => new Outbox(new Keep("site:", () => browser));

test("a text is kept until it is removed, over a reload and in every tab", () => {
  const browser = storage();
  const outbox = tab(browser);
  assert.equal(outbox.put(letter("a")), true);
  outbox.put(letter("b"));
  assert.deepEqual(tab(browser).all(), [letter("a"), letter("b")]);
  assert.deepEqual([...browser.kept.keys()], ["site:outbox"]);
  tab(browser).remove("a");
  outbox.remove("unknown");
  assert.deepEqual(ids(outbox), ["b"]);
  outbox.remove("b");
  assert.equal(browser.kept.size, 0);
});

test("a hundred are kept, and a hundred and first is refused", () => {
  const outbox = tab();
  for (let count = 0; count < 100; count += 1) assert.equal(outbox.put(letter(`${count}`)), true);
  assert.equal(outbox.put(letter("more")), false);
  assert.equal(outbox.put(letter("7", { error: "too_long" })), true);
  assert.deepEqual(outbox.all()[7], letter("7", { error: "too_long" }));
  assert.equal(outbox.all().length, 100);
});

test("what became of a text is kept with it", () => {
  const outbox = tab();
  outbox.put(letter("a"));
  outbox.put(letter("b"));
  outbox.change("a", { error: "too_long" });
  assert.deepEqual(outbox.all(), [letter("a", { error: "too_long" }), letter("b")]);
});

test("whoever is welcomed gets the texts written before, and nobody else's", () => {
  const outbox = tab();
  outbox.put(letter("visitor"));
  outbox.put(letter("mia before", { who: "mia" }));
  outbox.put(letter("mia's", { who: "mia", customer: "k1", conversation: "c1" }));
  outbox.put(letter("eve's", { who: "eve", customer: "k2", conversation: "c2" }));
  const claimed = outbox.claim({ customer: "k1", who: "mia", conversation: "c9" });
  assert.deepEqual(claimed, [
    letter("mia before", { who: "mia", customer: "k1", conversation: "c9" }),
    letter("mia's", { who: "mia", customer: "k1", conversation: "c1" }),
  ]);
  assert.deepEqual(ids(outbox), ["visitor", "mia before", "mia's", "eve's"]);
  assert.deepEqual(outbox.all().map(({ customer }) => customer), [null, "k1", "k1", "k2"]);
});

test("forgetting everything leaves nothing in the browser", () => {
  const browser = storage();
  const outbox = tab(browser);
  outbox.put(letter("a"));
  outbox.clear();
  assert.equal(browser.kept.size, 0);
});

test("what another version or a hand has written is as good as nothing", () => {
  const browser = storage();
  for (const garbage of ["{", "7", '"x"', "{}", "null"]) {
    browser.setItem("site:outbox", garbage);
    assert.deepEqual(tab(browser).all(), []);
  }
});

test("where the browser denies its storage, or it is full, this page's memory serves", () => {
  for (const denied of [
    () => { throw new Error("denied"); },
    () => ({ ...storage(), setItem: () => { throw new Error("full"); } }),
  ]) {
    const keep = new Keep("site:", /** @type {any} */ (denied));
    const outbox = new Outbox(keep);
    outbox.put(letter("a"));
    assert.deepEqual(ids(outbox), ["a"]);
    outbox.remove("a");
    assert.deepEqual(ids(outbox), []);
    assert.equal(keep.read("outbox"), null);
  }
});

test("what one tab removes is gone for a tab that wrote it too", () => {
  const browser = storage();
  const [one, other] = [new Keep("site:", () => browser), new Keep("site:", () => browser)];
  one.write("visitor", { token: "t" });
  other.write("visitor", null);
  assert.equal(one.read("visitor"), null);
  assert.equal(new Keep("another:", () => browser).read("visitor"), null);
});

/** @returns {{requests: Requests, sent: any[]}} */
function asked() {
  /** @type {any[]} */
  const sent = [];
  const requests = new Requests((frame) => {
    sent.push({ ...frame });
    return true;
  });
  return { requests, sent };
}

test("a request is sent at once and again after a reconnect, by the same id, until it is answered", () => {
  const { requests, sent } = asked();
  requests.add({ type: "contact.leave", email: "a@b.example" }, "c1");
  assert.deepEqual(sent, [{ type: "contact.leave", email: "a@b.example", id: sent[0].id, conversation: "c1" }]);
  requests.deliver("c2");
  assert.deepEqual(sent[1], sent[0]);
  assert.equal(requests.answered("unknown"), null);
  assert.equal(requests.answered(sent[0].id), "contact.leave");
  assert.equal(requests.answered(sent[0].id), null);
  requests.deliver("c2");
  assert.equal(sent.length, 2);
});

test("a request made before the welcome goes to the conversation welcomed, and stays there", () => {
  const { requests, sent } = asked();
  requests.add({ type: "handoff.request" }, null);
  assert.deepEqual(sent, []);
  assert.equal(requests.waitsFor("handoff.request"), true);
  assert.equal(requests.waitsFor("contact.leave"), false);
  requests.deliver("c1");
  requests.deliver("c2");
  assert.deepEqual(sent.map((frame) => frame.conversation), ["c1", "c1"]);
  requests.clear();
  assert.equal(requests.waitsFor("handoff.request"), false);
});
