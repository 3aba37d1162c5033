// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import "../../static/js/wire/shared-line.js"; // loaded, so that its import takes no time
import { Chat } from "../../static/js/widget/chat.js";
import { Session } from "../../static/js/widget/session.js";
import { Keep } from "../../static/js/widget/storage.js";
import { rows } from "../../static/js/wire/timeline.js";
import { browser as pagesOf } from "./pages.js";
import { network, turns, welcome } from "./socket.js";
import { storage } from "./storage.js";

/** A shop's token that names its customer. @param {string} sub */
const identityOf = (sub) => `h.${btoa(JSON.stringify({ sub }))}.s`;
/** @param {number} seq @param {string} text @param {object} [more] */
const said = (seq, text, more = {}) => ({
  type: "event", conversation: "c", seq, kind: "message", at: seq,
  message: { id: `m${seq}`, place: seq, author: "customer", name: "", text, at: seq, ...more },
});
/** @param {number} upto @param {object[]} events @param {object} [more] */
const page = (upto, events, more = {}) => ({ conversation: "c", epoch: "e", upto, events, ...more });

/**
 * A browser with a clock that only the test moves: storage that its tabs share, and a service that names visitors.
 * @param {import("node:test").TestContext} t
 */
function browser(t) {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const kept = storage();
  /** @type {string[]} */
  const asked = [];
  let visitors = 0;
  Object.assign(globalThis, {
    fetch: async (/** @type {string} */ url, /** @type {{body: string}} */ { body }) => {
      const { token } = JSON.parse(body);
      asked.push(`${url} ${token}`);
      visitors += 1;
      return Response.json({ token: `v${visitors}`, expires_at: Date.now() + 30 * 24 * 3600_000 });
    },
  });
  /** @param {{share?: any}} [options] */
  const tab = ({ share } = {}) => {
    const net = network();
    Object.assign(globalThis, { WebSocket: net.socketClass });
    const keep = new Keep("site:", () => kept);
    const session = new Session({ site: "s", keep, renewIdentity: async () => "" });
    let locale = "en";
    const chat = new Chat({ url: "wss://chat.example/ws/customer", session, keep, locale: () => locale, share });
    /** @type {string[]} */
    const refusals = [];
    chat.addEventListener("refused", (event) => refusals.push(/** @type {CustomEvent} */ (event).detail));
    const shown = () => rows(chat.line).map((row) => {
      if (row.kind === "message") return row.message.text;
      return row.kind === "pending" ? `${row.pending.text} (${row.pending.error ?? row.pending.state})` : row.kind;
    });
    /** @param {object} [more] */
    const greet = async (more) => {
      await turns();
      net.last.accept();
      net.last.says(welcome(more));
    };
    /** @param {object} [more] */
    const open = async (more) => {
      chat.open();
      await greet(more);
    };
    t.after(() => chat.logout());
    return {
      chat, net, shown, greet, open, session, refusals, says: (/** @type {object} */ frame) => net.last.says(frame),
      sent: (/** @type {string} */ type) => net.last.sent.filter((frame) => frame.type === type), speak: (/** @type {string} */ now) => { locale = now; },
    };
  };
  const tick = async (/** @type {number} */ ms) => {
    t.mock.timers.tick(ms);
    await turns();
  };
  return { tab, tick, kept, asked };
}

/** An open chat of a visitor. @param {import("node:test").TestContext} t */
async function opened(t) {
  const all = browser(t);
  const tab = all.tab();
  await tab.open();
  return { ...all, ...tab };
}

test("hello says who and in which language, and after an interruption where to go on", async (t) => {
  const { sent, says, net, tick, greet } = await opened(t);
  assert.deepEqual(sent("hello"), [{ type: "hello", token: "v1", identity: "", locale: "en" }]);
  says(said(1, "one"));
  net.last.ends(1006);
  await tick(1_000);
  await greet({ page: page(1, [], { after: 1 }) });
  assert.deepEqual(sent("hello"), [{ type: "hello", token: "v1", identity: "", locale: "en", conversation: "c", epoch: "e", seq: 1 }]);
});

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

test("stopping names the turn and how much of it was seen", async (t) => {
  const { chat, says, sent } = await opened(t);
  chat.stop(3);
  says({ type: "turn.started", conversation: "c", turn: "u", part: 1, handle: 1, place: 1 });
  chat.stop(3);
  assert.deepEqual(sent("turn.stop"), [{ type: "turn.stop", conversation: "c", turn: "u", painted: 3 }]);
});

test("a person is asked for once, also over an interruption, until the server has answered", async (t) => {
  const { chat, says, sent, net, tick, greet, refusals } = await opened(t);
  chat.askForHuman();
  chat.askForHuman();
  const [{ id }] = sent("handoff.request");
  assert.equal(sent("handoff.request").length, 1);
  assert.equal(chat.asking, true);
  net.last.ends(1006);
  await tick(1_000);
  await greet();
  assert.deepEqual(sent("handoff.request"), [{ type: "handoff.request", id, conversation: "c" }]);
  says({ type: "ack", id, seq: 1, conversation: "c", at: 1 });
  assert.equal(chat.asking, false);
  chat.askForHuman();
  const again = sent("handoff.request").at(-1).id;
  assert.notEqual(again, id);
  says({ type: "refused", code: "not_allowed", message: "", id: again, of: "handoff.request" });
  assert.equal(chat.asking, false);
  assert.deepEqual(refusals, ["not_allowed"]);
});

test("an address that was refused does not count as left; one that was taken does", async (t) => {
  const { chat, says, sent, refusals } = await opened(t);
  chat.leaveContact("mia");
  assert.equal(chat.leavingContact, true);
  says({ type: "refused", code: "bad_email", message: "", id: sent("contact.leave")[0].id, of: "contact.leave" });
  assert.deepEqual([chat.contact, chat.contactRefused, chat.leavingContact], [false, "bad_email", false]);
  assert.deepEqual(refusals, []);
  chat.leaveContact("mia@a.example");
  assert.equal(chat.contactRefused, null);
  says({ type: "ack", id: sent("contact.leave")[1].id, seq: 1, conversation: "c", at: 1 });
  assert.deepEqual([chat.contact, chat.leavingContact], [true, false]);
});

test("an address left in another tab is known here", async (t) => {
  const { chat, says } = await opened(t);
  says({ type: "event", conversation: "other", seq: 1, kind: "contact", at: 1 });
  assert.equal(chat.contact, false);
  says({ type: "event", conversation: "c", seq: 1, kind: "contact", at: 1 });
  assert.equal(chat.contact, true);
});

test("a new conversation takes the place of the one shown when the server has begun it", async (t) => {
  const { chat, says, sent, shown, net } = await opened(t);
  says(said(1, "old"));
  assert.equal(chat.startNew(), true);
  assert.deepEqual(sent("conversation.new"), [{ type: "conversation.new" }]);
  assert.deepEqual(shown(), ["old"]);
  says(welcome({ conversation: "d", page: { ...page(0, []), conversation: "d" } }));
  assert.deepEqual([shown(), chat.line.id], [[], "d"]);
  assert.equal(chat.show("c"), true);
  assert.deepEqual(sent("conversation.open"), [{ type: "conversation.open", conversation: "c" }]);
  net.last.ends(1006);
  assert.equal(chat.startNew(), false);
});

test("a switch that was refused changes nothing", async (t) => {
  const { chat, says, shown, refusals, net, tick, sent, greet } = await opened(t);
  says(said(1, "old"));
  chat.show("gone");
  says({ type: "refused", code: "not_found", message: "", of: "conversation.open" });
  assert.deepEqual([shown(), refusals], [["old"], ["not_found"]]);
  net.last.ends(1006);
  await tick(1_000);
  await greet({ page: page(1, [], { after: 1 }) });
  assert.equal(sent("hello")[0].conversation, "c");
  assert.deepEqual(shown(), ["old"]);
});

test("an interrupted switch begins with a hello that resumes nothing", async (t) => {
  const { chat, net, tick, sent, greet } = await opened(t);
  chat.startNew();
  net.last.ends(1006);
  await tick(1_000);
  await greet();
  assert.equal("conversation" in sent("hello")[0], false);
});

test("the list of earlier conversations is asked for and shown", async (t) => {
  const { chat, says, sent, net } = await opened(t);
  assert.equal(chat.listEarlier(), true);
  assert.equal(chat.earlier, null);
  assert.equal(sent("conversation.list").length, 1);
  says({ type: "conversations", items: [{ id: "c", status: "open", last_line: "hi", at: 1, owner: { kind: "assistant" } }] });
  assert.deepEqual(chat.earlier?.map(({ id }) => id), ["c"]);
  net.last.ends(1006);
  assert.equal(chat.listEarlier(), false);
});

test("a hole in the conversation is asked for after a moment, and again while it stays", async (t) => {
  const { says, sent, shown, tick } = await opened(t);
  says(said(2, "two"));
  await tick(99);
  assert.deepEqual(sent("history.fetch"), []);
  await tick(1);
  assert.deepEqual(sent("history.fetch"), [{ type: "history.fetch", conversation: "c", after: 0 }]);
  await tick(1_500);
  assert.equal(sent("history.fetch").length, 2);
  says({ type: "history", page: page(2, [said(1, "one"), said(2, "two")], { after: 0 }), after: 0 });
  assert.deepEqual(shown(), ["one", "two"]);
  await tick(10_000);
  assert.equal(sent("history.fetch").length, 2);
});

test("a hole that closes by itself is not asked for", async (t) => {
  const { says, sent, tick } = await opened(t);
  says(said(2, "two"));
  says(said(1, "one"));
  await tick(10_000);
  assert.deepEqual(sent("history.fetch"), []);
});

test("older pages are asked for one at a time, until there are none", async (t) => {
  const { tab } = browser(t);
  const { chat, open, says, sent, shown } = tab();
  await open({ page: page(9, [said(9, "nine")], { earlier: true }) });
  chat.loadOlder();
  chat.loadOlder();
  assert.deepEqual(sent("history.fetch"), [{ type: "history.fetch", conversation: "c", before: 9 }]);
  says({ type: "history", page: page(9, [said(5, "five")], { earlier: true }), before: 9 });
  assert.equal(chat.loadingOlder, false);
  const all = chat.loadAll();
  assert.equal(sent("history.fetch").at(-1).before, 5);
  says({ type: "history", page: page(9, [said(1, "one")], { earlier: false }), before: 5 });
  await all;
  assert.deepEqual(shown(), ["one", "five", "nine"]);
  chat.loadOlder();
  assert.equal(sent("history.fetch").length, 2);
});

test("an older page that is refused for now is asked for again when it may be", async (t) => {
  const { tab, tick } = browser(t);
  const { chat, open, says, sent, refusals } = tab();
  await open({ page: page(9, [said(9, "nine")], { earlier: true }) });
  const all = chat.loadAll();
  const refused = { type: "refused", message: "", id: null, of: "history.fetch", conversation: "c" };
  says({ ...refused, code: "slow_down", retry_after_s: 0.5 });
  await tick(499);
  assert.equal(sent("history.fetch").length, 1);
  await tick(1);
  assert.equal(sent("history.fetch").length, 2);
  says({ ...refused, code: "unavailable", retry_after_s: null });
  await tick(3_000);
  assert.equal(sent("history.fetch").length, 3);
  says({ type: "history", page: page(9, [said(5, "five")], { earlier: false }), before: 9 });
  await all;
  assert.deepEqual([refusals, chat.loadingOlder], [[], false]);
});

test("an interruption does not leave an older page waiting", async (t) => {
  const { tab, tick } = browser(t);
  const { chat, open, net, sent, greet } = tab();
  const first = { page: page(9, [said(9, "nine")], { earlier: true }) };
  await open(first);
  chat.loadOlder();
  const all = chat.loadAll();
  net.last.ends(1006);
  await all;
  await tick(1_000);
  await greet(first);
  chat.loadOlder();
  assert.equal(sent("history.fetch").length, 1);
});

test("who stopped typing without a word is forgotten after six seconds", async (t) => {
  const { chat, says, tick } = await opened(t);
  says({ type: "typing", conversation: "c", author: "agent", name: "Kim" });
  await tick(5_000);
  says({ type: "typing", conversation: "c", author: "agent", name: "Kim" });
  await tick(5_999);
  assert.deepEqual(chat.line.typing, { author: "agent", name: "Kim" });
  await tick(1);
  assert.equal(chat.line.typing, null);
});

test("our own typing is told once there is somebody to tell", async (t) => {
  const { tab } = browser(t);
  const { chat, open, sent } = tab();
  chat.tell("typing.set", { on: true });
  await open();
  assert.deepEqual(sent("typing.set"), []);
  chat.tell("typing.set", { on: true });
  chat.tell("typing.set", { on: false });
  assert.deepEqual(sent("typing.set").map(({ on, conversation }) => [on, conversation]), [[true, "c"], [false, "c"]]);
});

test("a new token of the same customer changes nothing; another customer begins anew", async (t) => {
  const { tab } = browser(t);
  const { chat, open, net, says, shown, sent, greet } = tab();
  chat.identify(identityOf("mia"));
  await open({ name: "Mia" });
  assert.equal(sent("hello")[0].identity, identityOf("mia"));
  assert.equal(sent("hello")[0].token, "");
  says(said(1, "Mia's"));
  chat.identify(`${identityOf("mia")}2`);
  await turns();
  assert.deepEqual([net.sockets.length, shown()], [1, ["Mia's"]]);
  chat.identify(identityOf("eve"));
  assert.deepEqual([shown(), chat.welcomed, chat.name], [[], false, ""]);
  await greet({ customer: "k2" });
  assert.equal(net.sockets.length, 2);
  assert.equal(sent("hello")[0].identity, identityOf("eve"));
  assert.equal("conversation" in sent("hello")[0], false);
});

test("logging out leaves nothing of who was here", async (t) => {
  const { chat, shown, says, greet, sent, kept, asked } = await opened(t);
  says(said(1, "private"));
  chat.say("unsent");
  chat.logout();
  assert.deepEqual(shown(), []);
  assert.equal(kept.kept.size, 0);
  await greet();
  assert.equal(sent("hello")[0].token, "v2");
  assert.deepEqual(asked, ["/api/v1/widget/session null", "/api/v1/widget/session null"]);
  assert.deepEqual(sent("message.send"), []);
});

test("another language says a new hello and keeps the conversation", async (t) => {
  const { chat, speak, shown, says, greet, sent } = await opened(t);
  says(said(1, "one"));
  speak("zh");
  chat.relocate();
  await greet({ page: page(1, [], { after: 1 }) });
  assert.equal(sent("hello")[0].locale, "zh");
  assert.equal(sent("hello")[0].seq, 1);
  assert.deepEqual(shown(), ["one"]);
});

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

test("a visitor's token is renewed a day before it ends, and when it was refused, for the same visitor", async (t) => {
  const { tab, kept, asked } = browser(t);
  const { session } = tab();
  const keep = (/** @type {number} */ hours) => kept.setItem("site:visitor", JSON.stringify({ token: "old", expires_at: Date.now() + hours * 3600_000 }));
  keep(25);
  assert.deepEqual(await session.credentials(false), { token: "old", identity: "" });
  keep(23);
  assert.deepEqual(await session.credentials(false), { token: "v1", identity: "" });
  keep(25);
  assert.deepEqual(await session.credentials(true), { token: "v2", identity: "" });
  assert.deepEqual(asked, ["/api/v1/widget/session old", "/api/v1/widget/session old"]);
});

test("a service that gives no session is a failed attempt, and it goes on", async (t) => {
  const { tab, tick } = browser(t);
  const { chat, net } = tab();
  const { fetch } = globalThis;
  Object.assign(globalThis, { fetch: async () => new Response("", { status: 503 }) });
  chat.open();
  await turns();
  assert.deepEqual([chat.connection, net.sockets.length], ["reconnecting", 0]);
  Object.assign(globalThis, { fetch });
  await tick(1_000);
  assert.equal(net.sockets.length, 1);
});

test("a refused identity is asked for again from the page; without one the customer is a visitor", async (t) => {
  const { kept } = browser(t);
  const keep = new Keep("site:", () => kept);
  const fresh = [identityOf("mia"), ""];
  const session = new Session({ site: "s", keep, renewIdentity: async () => fresh.shift() ?? "" });
  session.identity = "expired";
  assert.deepEqual(await session.credentials(false), { token: "", identity: "expired" });
  assert.deepEqual(await session.credentials(true), { token: "", identity: identityOf("mia") });
  assert.equal(session.who, "mia");
  assert.deepEqual(await session.credentials(true), { token: "v1", identity: "" });
  assert.equal(session.who, "");
});

/** Tabs that share one line. @param {import("node:test").TestContext} t */
function sharing(t) {
  const all = browser(t);
  const pages = pagesOf();
  const life = new EventTarget();
  Object.assign(globalThis, { addEventListener: life.addEventListener.bind(life), removeEventListener: life.removeEventListener.bind(life) });
  /** As the scripts of this page would: with its locks and channels. @param {import("./pages.js").Page} page @param {() => unknown} act */
  const within = async (page, act) => {
    Object.defineProperty(globalThis, "navigator", { value: { locks: page.locks }, configurable: true });
    Object.assign(globalThis, { BroadcastChannel: page.Channel });
    act();
    for (let turn = 0; turn < 4; turn += 1) await turns();
  };
  const tab = () => {
    const page = pages.page();
    const made = all.tab({ share: () => import("../../static/js/wire/shared-line.js") });
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
