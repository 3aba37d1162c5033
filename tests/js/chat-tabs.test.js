// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import "../../static/js/wire/shared-line.js"; // loaded, so that its import takes no time
import { browser, identityOf, opened, page, said } from "./chat.js";
import { browser as pagesOf } from "./pages.js";
import { turns, welcome } from "./socket.js";
import { listening } from "./window.js";

test("the second tab of a site speaks for the same visitor, with the same texts on their way", async (t) => {
  const { chat, sent, says, shown, tab, asked } = await opened(t);
  const second = tab();
  await second.open();
  assert.equal(second.sent("hello")[0].token, "v1");
  assert.equal(asked.length, 1);
  chat.say("hello");
  const [{ id }] = sent("message.send");
  const stored = said(1, "hello", { client_id: id });
  says(stored);
  second.says(stored);
  second.says(said(2, "answer", { author: "assistant" }));
  says(said(2, "answer", { author: "assistant" }));
  assert.deepEqual(shown(), ["hello", "answer"]);
  assert.deepEqual(second.shown(), shown());
});

test("two tabs that open at the same moment become one visitor", async (t) => {
  const { tab } = browser(t);
  const [one, other] = [tab(), tab()];
  const tokens = await Promise.all([one.session.credentials(false), other.session.credentials(false)]);
  assert.deepEqual(tokens, [{ token: "v1", identity: "" }, { token: "v1", identity: "" }]);
});

test("who is forgotten in one tab is forgotten in all of them", async (t) => {
  const { chat, tab, greet, sent } = await opened(t);
  const second = tab();
  await second.open();
  second.says(said(1, "private"));
  second.chat.follow();
  assert.deepEqual(second.shown(), ["private"]);
  chat.logout();
  second.chat.follow();
  assert.deepEqual(second.shown(), []);
  await greet();
  await second.greet();
  assert.equal(second.sent("hello")[0].token, sent("hello")[0].token);
});

test("who was forgotten while a tab was away is not shown there again, before a server has answered", async (t) => {
  const { chat, tab, greet, tick } = await opened(t);
  const second = tab();
  await second.open();
  second.says(said(1, "private"));
  chat.logout();
  await greet();
  second.net.last.ends(1006);
  await tick(500);
  assert.deepEqual(second.shown(), []);
  second.chat.follow();
  await second.greet({ customer: "k2" });
  assert.equal(second.sent("hello")[0].conversation, undefined);
});

test("a log-out of which a tab hears late leaves whoever came since", async (t) => {
  const { chat, tab, greet, kept } = await opened(t);
  const second = tab();
  await second.open();
  const at = Date.now();
  chat.logout(at);
  await greet({ customer: "k2" });
  chat.say("hello");
  second.chat.logout(at - 1);
  await second.greet({ customer: "k2" });
  assert.equal(second.sent("hello")[0].token, "v2");
  assert.equal(JSON.parse(kept.getItem("site:outbox") ?? "[]").length, 1);
});

test("what was begun is told to be of whoever has left, and not of a visitor who logs in", async (t) => {
  const { chat, greet } = await opened(t);
  const forgotten = [0];
  chat.addEventListener("forgotten", () => { forgotten[0] += 1; });
  chat.identify(identityOf("mia"));
  await greet({ customer: "mia" });
  assert.deepEqual(forgotten, [0]);
  chat.identify(identityOf("leo"));
  await greet({ customer: "leo" });
  assert.deepEqual(forgotten, [1]);
  chat.logout();
  assert.deepEqual(forgotten, [2]);
});

/** Tabs that share one line. @param {import("node:test").TestContext} t */
function sharing(t) {
  const all = browser(t);
  const pages = pagesOf();
  listening(new EventTarget());
  /** As the scripts of this page would: with its locks and channels. @param {import("./pages.js").Page} page @param {() => unknown} act */
  const within = async (page, act) => {
    Object.defineProperty(globalThis, "navigator", { value: { locks: page.locks }, configurable: true });
    Object.assign(globalThis, { BroadcastChannel: page.Channel });
    act();
    for (let turn = 0; turn < 4; turn += 1) await turns();
  };
  /** @param {() => string} [framedBy] */
  const tab = (framedBy) => {
    const page = pages.page();
    const made = all.tab({ framedBy, share: () => import("../../static/js/wire/shared-line.js") });
    return { ...made, page, acts: (/** @type {() => unknown} */ act) => within(page, act) };
  };
  return { ...all, tab };
}

/** Two such tabs, the second of which follows the first, where this was said. @param {import("node:test").TestContext} t @param {string} text */
async function following(t, text) {
  const all = sharing(t);
  const [one, two] = [all.tab(), all.tab()];
  await one.acts(() => one.chat.open());
  await one.greet();
  await turns();
  await two.acts(() => two.chat.open());
  one.says(welcome({ page: page(1, [said(1, text)]) }));
  await turns();
  return { ...all, one, two };
}

test("a second tab speaks and hears through the first", async (t) => {
  const { one, two } = await following(t, "old");
  assert.equal(two.net.sockets.length, 0);
  assert.deepEqual([two.chat.connection, two.shown()], ["open", ["old"]]);
  two.chat.say("hello");
  await turns();
  const [{ id }] = one.sent("message.send");
  one.says({ type: "ack", id, seq: 2, conversation: "c", at: 2 });
  await turns();
  assert.deepEqual(two.shown(), ["old", "hello (sent)"]);
  one.says(said(2, "hello", { client_id: id }));
  await turns();
  assert.deepEqual(two.shown(), ["old", "hello"]);
});

test("a tab that takes over sends again what the one before may not have", async (t) => {
  const { one, two, kept } = await following(t, "old");
  one.page.frozen = true;
  two.chat.say("hello");
  await turns();
  assert.deepEqual(one.sent("message.send"), []);
  await two.acts(() => one.page.end());
  await two.greet({ page: page(1, [], { after: 1 }) });
  assert.equal(two.sent("hello")[0].seq, 1);
  const [{ id }] = two.sent("message.send");
  two.says(said(2, "hello", { client_id: id }));
  assert.deepEqual(two.shown(), ["old", "hello"]);
  assert.equal(kept.getItem("site:outbox"), null);
});

test("who logs out in a tab that follows is told nothing more of who was here", async (t) => {
  const { one, two } = await following(t, "private");
  assert.deepEqual(two.shown(), ["private"]);
  await two.acts(() => two.chat.logout());
  one.says(said(2, "private too"));
  await turns();
  await two.greet({ customer: "k2" });
  assert.deepEqual(two.shown(), []);
  assert.equal(two.sent("hello")[0].token, "v2");
  await one.acts(() => one.chat.follow());
  two.says(welcome({ customer: "k2" }));
  await turns();
  assert.deepEqual([one.shown(), one.chat.customer], [[], "k2"]);
  assert.equal(one.net.last.readyState, 3);
});

test("tabs in two languages have a line each", async (t) => {
  const { tab } = sharing(t);
  const [one, two] = [tab(), tab()];
  await one.acts(() => one.chat.open());
  await one.greet();
  await turns();
  two.speak("zh");
  await two.acts(() => two.chat.open());
  assert.equal(two.sent("hello").length, 0);
  await two.greet();
  assert.equal(two.sent("hello")[0].locale, "zh");
});

test("tabs in the frames of two origins' pages have a line each, which the server judges", async (t) => {
  const { tab } = sharing(t);
  const [one, same, other] = [tab(() => "https://shop.example"), tab(() => "https://shop.example"), tab(() => "https://blog.example")];
  await one.acts(() => one.chat.open());
  await one.greet();
  await turns();
  await same.acts(() => same.chat.open());
  await other.acts(() => other.chat.open());
  await other.greet();
  assert.equal(same.net.sockets.length, 0);
  assert.equal(other.sent("hello")[0].framed_by, "https://blog.example");
});
