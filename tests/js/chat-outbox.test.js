// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { browser, identityOf, opened, page, said } from "./chat.js";

test("a text is shown at once, sent, acknowledged and stored, and is one text all along", async (t) => {
  const { chat, says, sent, shown, kept } = await opened(t);
  chat.say("hello");
  assert.deepEqual(shown(), ["hello (sending)"]);
  const [{ id, ...rest }] = sent("message.send");
  assert.deepEqual(rest, { type: "message.send", conversation: "c", text: "hello" });
  says({ type: "ack", id, seq: 1, conversation: "c", at: 1 });
  assert.deepEqual(shown(), ["hello (sent)"]);
  assert.equal(kept.getItem("site:outbox"), null);
  says(said(1, "hello", { client_id: id }));
  assert.deepEqual(shown(), ["hello"]);
});

test("a text written before the welcome is shown, kept and sent after it", async (t) => {
  const { tab } = browser(t);
  const { chat, shown, open, sent } = tab();
  chat.say("early");
  assert.deepEqual(shown(), ["early (sending)"]);
  await open();
  assert.deepEqual(shown(), ["early (sending)"]);
  assert.deepEqual(sent("message.send").map(({ text, conversation }) => [text, conversation]), [["early", "c"]]);
});

test("a text without an acknowledgement is sent again by the same id, over an interruption and a reload", async (t) => {
  const { chat, sent, net, tick, greet, tab } = await opened(t);
  chat.say("hello");
  const [{ id }] = sent("message.send");
  net.last.ends(1006);
  await tick(1_000);
  await greet();
  assert.deepEqual(sent("message.send").map((frame) => frame.id), [id]);
  const reloaded = tab();
  assert.deepEqual(reloaded.shown(), ["hello (sending)"]);
  await reloaded.open();
  assert.deepEqual(reloaded.shown(), ["hello (sending)"]);
  assert.deepEqual(reloaded.sent("message.send").map((frame) => frame.id), [id]);
});

test("a text that was stored while the line was down is not sent again", async (t) => {
  const { chat, sent, net, tick, greet, shown, kept } = await opened(t);
  chat.say("hello");
  const [{ id }] = sent("message.send");
  net.last.ends(1006);
  await tick(1_000);
  await greet({ page: page(1, [said(1, "hello", { client_id: id })]) });
  assert.deepEqual(shown(), ["hello"]);
  assert.deepEqual(sent("message.send"), []);
  assert.equal(kept.getItem("site:outbox"), null);
});

test("a refused text stays and says why; it is sent again or dropped as the customer likes", async (t) => {
  const { chat, says, sent, shown, refusals, tab } = await opened(t);
  chat.say("x".repeat(9));
  const [{ id }] = sent("message.send");
  says({ type: "refused", code: "too_long", message: "", id, of: "message.send" });
  assert.deepEqual(shown(), ["xxxxxxxxx (too_long)"]);
  assert.deepEqual(refusals, []);
  const reloaded = tab();
  assert.deepEqual(reloaded.shown(), ["xxxxxxxxx (too_long)"]);
  await reloaded.open();
  assert.deepEqual(reloaded.shown(), ["xxxxxxxxx (too_long)"]);
  assert.deepEqual(reloaded.sent("message.send"), []);
  reloaded.chat.retry(id);
  reloaded.chat.retry(id);
  assert.deepEqual(reloaded.shown(), ["xxxxxxxxx (sending)"]);
  assert.deepEqual(reloaded.sent("message.send").map((frame) => frame.id), [id]);
  reloaded.chat.discard(id);
  assert.deepEqual(reloaded.shown(), []);
  reloaded.chat.retry(id);
  assert.equal(reloaded.sent("message.send").length, 1);
});

test("told to slow down, it sends again by itself", async (t) => {
  const { chat, says, sent, shown, tick } = await opened(t);
  chat.say("hello");
  const [{ id }] = sent("message.send");
  const refused = { type: "refused", code: "slow_down", message: "", id, of: "message.send" };
  says({ ...refused, retry_after_s: 2 });
  assert.deepEqual(shown(), ["hello (sending)"]);
  await tick(1_999);
  assert.equal(sent("message.send").length, 1);
  await tick(1);
  assert.equal(sent("message.send").length, 2);
  says(refused);
  await tick(3_000);
  assert.deepEqual(sent("message.send").map((frame) => frame.id), [id, id, id]);
});

test("a text tried again before the line is there goes with it, once", async (t) => {
  const { chat, says, sent, tab } = await opened(t);
  chat.say("hello");
  const [{ id }] = sent("message.send");
  says({ type: "refused", code: "unavailable", message: "", id, of: "message.send" });
  const reloaded = tab();
  reloaded.chat.retry(id);
  reloaded.chat.retry(id);
  assert.deepEqual(reloaded.shown(), ["hello (sending)"]);
  await reloaded.open();
  assert.deepEqual(reloaded.sent("message.send").map((frame) => [frame.id, frame.conversation]), [[id, "c"]]);
});

test("what does not fit into the outbox is not sent, says so, and can be tried again", async (t) => {
  const { chat, shown, sent, says } = await opened(t);
  for (let count = 0; count <= 100; count += 1) chat.say(`${count}`);
  assert.equal(sent("message.send").length, 100);
  assert.equal(shown().at(-1), "100 (unavailable)");
  const { id } = chat.line.pending[100];
  chat.retry(id);
  assert.equal(sent("message.send").length, 100);
  assert.equal(shown().at(-1), "100 (unavailable)");
  says({ type: "ack", id: sent("message.send")[0].id, seq: 1, conversation: "c", at: 1 });
  chat.retry(id);
  assert.equal(shown().at(-1), "100 (sending)");
  assert.deepEqual([sent("message.send").length, sent("message.send")[100].id], [101, id]);
});

test("a known customer's unsent text is shown as soon as the page has said who is here", async (t) => {
  const { tab } = browser(t);
  const mia = tab();
  mia.chat.identify(identityOf("mia"));
  await mia.open({ customer: "k-mia" });
  mia.chat.say("hello");
  const reloaded = tab();
  assert.deepEqual(reloaded.shown(), []);
  reloaded.chat.identify(identityOf("mia"));
  assert.deepEqual(reloaded.shown(), ["hello (sending)"]);
  await reloaded.open({ customer: "k-mia" });
  assert.equal(reloaded.sent("message.send").length, 1);
});

test("what is written before the page has said who is here goes to whom it names, once", async (t) => {
  const { tab } = browser(t);
  const left = tab();
  left.chat.say("another's, left by the page before");
  const mia = tab();
  mia.chat.say("hello");
  mia.chat.identify(identityOf("mia"));
  assert.deepEqual(mia.shown(), ["hello (sending)"]);
  await mia.open({ customer: "k-mia" });
  assert.deepEqual(mia.sent("message.send").map((frame) => frame.text), ["hello"]);
});

test("nobody's unsent text is shown to, or sent for, another", async (t) => {
  const { tab } = browser(t);
  const mia = tab();
  mia.chat.identify(identityOf("mia"));
  await mia.open({ customer: "k-mia", conversation: "c-mia", page: { ...page(0, []), conversation: "c-mia" } });
  mia.chat.say("Mia's secret");
  const visitor = tab();
  await visitor.open();
  assert.deepEqual(visitor.shown(), []);
  assert.deepEqual(visitor.sent("message.send"), []);
});
