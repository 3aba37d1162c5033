// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { Connection } from "../../static/js/wire/connection.js";
import { SharedLine } from "../../static/js/wire/shared-line.js";
import { browser } from "./pages.js";
import { network, turns, welcome } from "./socket.js";
import { clock } from "./window.js";

/**
 * Tabs of one browser, on a clock that only tick() moves. The server's end of each socket is in the test's hands.
 * @param {import("node:test").TestContext} t
 */
function opened(t) {
  const tick = clock(t, { apis: ["setTimeout", "setInterval", "Date"], now: 1_700_000_000_000 });
  const pages = browser();
  const shown = Object.assign(new EventTarget(), { hidden: false });
  Object.assign(globalThis, { document: shown });
  /** @type {ReturnType<typeof network>["sockets"]} */
  const dialled = [];

  /** @param {{group?: () => string, page?: import("./pages.js").Page, held?: any}} [options] */
  const tab = ({ group = () => "mia", page = pages.page(), held = null } = {}) => {
    const net = network();
    const life = Object.assign(new EventTarget(), { document: /** @type {{hidden: boolean}} */ (shown) });
    const told = /** @type {any[]} */ ([]);
    const self = { net, page, life, told, held, hellos: 0, of: (/** @type {string} */ type) => told.filter((one) => one.type === type) };
    const connection = new Connection({
      url: "wss://chat.example/ws/customer", random: () => 0.5, hello: () => { self.hellos += 1; return { type: "hello", ...self.held }; },
      socketClass: /** @type {any} */ (class extends net.socketClass {
        /** @param {string} url @param {string[]} protocols */
        constructor(url, protocols) {
          super(url, protocols);
          dialled.push(net.last);
        }
      }),
    });
    const line = new SharedLine({ line: connection, group, held: () => self.held, page: life });
    line.addEventListener("state", (event) => told.push(/** @type {CustomEvent} */ (event).detail.state));
    line.addEventListener("frame", (event) => told.push(/** @type {CustomEvent} */ (event).detail));
    /** As its own scripts would: with its own locks and channels. @param {() => unknown} act */
    const acts = async (act) => {
      Object.defineProperty(globalThis, "navigator", { value: { locks: page.locks }, configurable: true });
      Object.assign(globalThis, { BroadcastChannel: page.Channel });
      act();
      await turns();
    };
    t.after(() => { line.close(); page.end(); });
    return Object.assign(self, {
      line, acts,
      open: () => acts(() => line.open()),
      happens: (/** @type {string} */ name) => acts(() => life.dispatchEvent(new Event(name))),
      /** The tab is closed. */
      ends: async () => {
        net.last?.close();
        Object.assign(self, { closed: true });
        page.end();
        page.frozen = true;
        await turns();
      },
      /** The server welcomes its newest socket. @param {object} [more] */
      greet: async (more = {}) => {
        net.last.accept();
        net.last.says(welcome(more));
        await turns();
      },
    });
  };
  /** So many tabs; the first has the line, and all are shown how things stand. @param {number} count @param {any[]} [options] */
  const tabs = async (count, options = []) => {
    const made = [];
    for (let index = 0; index < count; index += 1) {
      const one = tab(options[index]);
      await one.open();
      if (index === 0) await one.greet();
      else await shows(made[0]);
      made.push(one);
    }
    return made;
  };
  /** The server answers the leader's newest conversation.open. @param {any} leader @param {object} [more] */
  const shows = async (leader, more = {}) => {
    leader.net.last.says(welcome(more));
    await turns();
  };
  return { pages, tab, tabs, tick, shows, dialled, shown, open: () => dialled.filter((socket) => socket.readyState < 2) };
}

const said = (seq = 1, text = "hi") => ({
  type: "event", conversation: "c", seq, kind: "message", at: seq,
  message: { id: `m${seq}`, place: seq, author: "customer", name: "", text, at: seq },
});

test("three tabs have one socket, and each is shown how things stand", async (t) => {
  const { tabs, dialled } = opened(t);
  const [one, two, three] = await tabs(3);
  assert.equal(dialled.length, 1);
  assert.deepEqual(one.net.last.sent.map((frame) => frame.type), ["hello", "conversation.open", "conversation.open"]);
  for (const tab of [two, three]) {
    assert.equal(tab.line.state, "open");
    assert.deepEqual(tab.told.map((one) => one.type ?? one), ["connecting", "open", "welcome"]);
  }
  assert.equal(one.of("welcome").length, 1);
});

test("what a tab holds is not shown to it again", async (t) => {
  const { tabs } = opened(t);
  const [one] = await tabs(3, [{}, { held: { conversation: "c", epoch: "e", seq: 4 } }, { held: { conversation: "another", epoch: "e", seq: 9 } }]);
  assert.deepEqual(one.net.last.sent.slice(1), [
    { type: "conversation.open", conversation: "c", epoch: "e", seq: 4 },
    { type: "conversation.open", conversation: "c" },
  ]);
});

test("what happens is heard in every tab, once and in order", async (t) => {
  const { tabs } = opened(t);
  const made = await tabs(3);
  for (const seq of [1, 2, 3]) made[0].net.last.says(said(seq));
  await turns();
  for (const tab of made) assert.deepEqual(tab.of("event").map(({ seq }) => seq), [1, 2, 3]);
});

test("any tab speaks through the one socket, and an answer is given to who asked", async (t) => {
  const { tabs } = opened(t);
  const [one, two, three] = await tabs(3);
  const { last } = one.net;
  assert.equal(three.line.send({ type: "message.send", id: "a", conversation: "c", text: "hi" }), true);
  await turns();
  assert.deepEqual(last.sent.at(-1), { type: "message.send", id: "a", conversation: "c", text: "hi" });
  last.says({ type: "ack", id: "a", seq: 1, conversation: "c", at: 1 });
  two.line.send({ type: "message.send", id: "b", conversation: "c", text: "" });
  await turns();
  last.says({ type: "refused", id: "b", code: "empty", message: "", of: "message.send" });
  await turns();
  assert.deepEqual([one, two, three].map((tab) => [tab.of("ack").length, tab.of("refused").length]), [[0, 0], [0, 1], [1, 0]]);
});

test("of those who ask for the same kind of answer, each is given its own, in the order in which they asked", async (t) => {
  const { tabs } = opened(t);
  const [one, two, three] = await tabs(3);
  const history = (/** @type {number} */ before) => ({ type: "history", page: { conversation: "c", epoch: "e", upto: 9, events: [] }, before });
  for (const [tab, before] of /** @type {const} */ ([[three, 30], [one, 10], [two, 20]])) {
    tab.line.send({ type: "history.fetch", conversation: "c", before });
    await turns();
  }
  one.net.last.says(history(30));
  one.net.last.says({ type: "refused", code: "slow_down", message: "", of: "history.fetch" });
  one.net.last.says(history(20));
  await turns();
  assert.deepEqual([one, two, three].map((tab) => tab.of("history").map(({ before }) => before)), [[], [20], [30]]);
  assert.deepEqual([one, two, three].map((tab) => tab.of("refused").length), [1, 0, 0]);
});

test("what the server tells all unasked answers nobody's question", async (t) => {
  const { tabs } = opened(t);
  const [one, two, three] = await tabs(3);
  const history = (/** @type {object} */ more) => ({ type: "history", page: { conversation: "c", epoch: "e", upto: 9, events: [] }, ...more });
  two.line.send({ type: "history.fetch", conversation: "c", before: 30 });
  await turns();
  one.net.last.says(history({ after: 9 }));
  one.net.last.says(history({ before: 30 }));
  await turns();
  assert.deepEqual([one, two, three].map((tab) => tab.of("history").map(({ after, before }) => after ?? -before)), [[9], [9, -30], [9]]);
});

test("a tab that comes while another conversation is being chosen is shown that one", async (t) => {
  const { tabs, tab, shows } = opened(t);
  const [one, two] = await tabs(2);
  two.line.send({ type: "conversation.new" });
  await turns();
  const late = tab();
  await late.open();
  assert.equal(one.net.last.sent.at(-1).type, "conversation.new");
  await shows(one, { conversation: "d" });
  assert.deepEqual([one, two, late].map((each) => each.of("welcome").at(-1).conversation), ["d", "d", "d"]);
  assert.equal(late.line.state, "open");
});

test("a tab that comes while another conversation is being chosen is shown the old one where that is refused", async (t) => {
  const { tabs, tab, shows } = opened(t);
  const [one, two] = await tabs(2);
  two.line.send({ type: "conversation.open", conversation: "gone" });
  await turns();
  const late = tab();
  await late.open();
  one.net.last.says({ type: "refused", code: "not_found", message: "", of: "conversation.open" });
  await turns();
  assert.deepEqual(one.net.last.sent.at(-1), { type: "conversation.open", conversation: "c" });
  await shows(one);
  assert.deepEqual([two.of("refused").length, late.of("refused").length, late.line.state], [1, 0, "open"]);
});

test("a tab that is told it has no line has not spoken", async (t) => {
  const { tabs, tab, shows } = opened(t);
  const [one] = await tabs(1);
  const late = tab();
  await late.open();
  assert.equal(late.line.send({ type: "conversation.new" }), false);
  await turns();
  assert.equal(one.net.last.last("conversation.new"), undefined);
  await shows(one);
  assert.equal(late.line.send({ type: "conversation.new" }), true);
  await turns();
  assert.deepEqual(one.net.last.sent.at(-1), { type: "conversation.new" });
});

test("a line that sleeps wakes for a tab that is opened, and for one that speaks", async (t) => {
  const { tabs, tab, shows, shown } = opened(t);
  const [one, two] = await tabs(2);
  shown.hidden = true;
  one.net.last.ends(4408);
  await turns();
  assert.deepEqual([one.line.state, two.line.state], ["closed", "closed"]);
  const late = tab();
  late.life.document = { hidden: false };
  await late.open();
  assert.equal(one.net.sockets.length, 2);
  await one.greet();
  for (const page of [two, late]) await shows(one);
  assert.deepEqual([one, two, late].map((page) => page.line.state), ["open", "open", "open"]);
  one.net.last.ends(4408);
  await turns();
  assert.equal(two.line.send({ type: "conversation.list" }), false);
  await turns();
  assert.equal(one.net.sockets.length, 3);
});

test("another conversation chosen in one tab is shown in all, and to tabs that come later", async (t) => {
  const { tabs, tab, shows } = opened(t);
  const [one, two, three] = await tabs(3);
  two.line.send({ type: "conversation.new" });
  await turns();
  await shows(one, { conversation: "d" });
  for (const each of [one, two, three]) assert.equal(each.of("welcome").at(-1).conversation, "d");
  const late = tab();
  await late.open();
  assert.deepEqual(one.net.last.sent.at(-1), { type: "conversation.open", conversation: "d" });
  two.line.send({ type: "conversation.open", conversation: "gone" });
  await turns();
  await shows(one, { conversation: "d" });
  one.net.last.says({ type: "refused", code: "not_found", message: "", of: "conversation.open" });
  await turns();
  assert.deepEqual([one, two, three, late].map((each) => each.of("refused").length), [0, 1, 0, 0]);
  assert.equal(late.of("welcome").length, 1);
});

test("drafts of several tabs are counted as those of one client", async (t) => {
  const { tabs } = opened(t);
  const [one, two] = await tabs(2);
  two.line.send({ type: "draft", conversation: "c", text: "a", number: 1 });
  await turns();
  one.line.send({ type: "draft", conversation: "c", text: "b", number: 1 });
  two.line.send({ type: "draft", conversation: "c", text: "c", number: 2 });
  await turns();
  assert.deepEqual(one.net.last.sent.filter((frame) => frame.type === "draft").map(({ text, number }) => [text, number]), [["a", 1], ["b", 2], ["c", 3]]);
});

test("when the tab with the line is closed, another takes over from where it is, and the rest are shown the rest", async (t) => {
  const { tabs, shows, open } = opened(t);
  const [one, two, three] = await tabs(3);
  one.net.last.says(said(1));
  await turns();
  two.held = three.held = { conversation: "c", epoch: "e", seq: 1 };
  await one.ends();
  assert.equal(open().length, 1);
  two.net.last.accept();
  assert.deepEqual(two.net.last.sent, [{ type: "hello", conversation: "c", epoch: "e", seq: 1 }]);
  assert.equal(three.line.state, "connecting");
  await two.greet();
  assert.deepEqual(two.net.last.sent.at(-1), { type: "conversation.open", conversation: "c", epoch: "e", seq: 1 });
  // What is told before a tab was shown the state is part of that state.
  two.net.last.says(said(2));
  await shows(two);
  two.net.last.says(said(3));
  await turns();
  assert.deepEqual(two.of("event").map(({ seq }) => seq), [1, 2, 3]);
  assert.deepEqual(three.of("event").map(({ seq }) => seq), [1, 3]);
  assert.equal(three.line.state, "open");
});

test("a tab that falls silent loses the line after two pulses, and gives up its socket when it thaws", async (t) => {
  const { tabs, tick, pages, open, shows } = opened(t);
  const [one, two, three] = await tabs(3);
  pages.freeze(one.page);
  await tick(1_499);
  await tick(1_499);
  assert.equal(two.net.sockets.length + three.net.sockets.length, 0);
  for (let wait = 0; wait < 4_000; wait += 1) await tick(1);
  assert.equal(open().length, 2);
  const [leader, follower] = two.net.last?.readyState === 0 ? [two, three] : [three, two];
  await leader.greet();
  await shows(leader);
  leader.net.last.says(said(1));
  await turns();
  for (const tab of [leader, follower]) assert.equal(tab.of("event").length, 1);
  assert.equal(one.net.last.readyState, 1);
  await pages.thaw(one.page);
  assert.equal(one.net.last.readyState, 3);
  await shows(leader);
  leader.net.last.says(said(2));
  await turns();
  for (const tab of [one, leader, follower]) assert.equal(tab.of("event").at(-1).seq, 2);
  assert.equal(open().length, 1);
});

test("a tab that answers keeps the line for ever", async (t) => {
  const { tabs, tick, dialled } = opened(t);
  const [one] = await tabs(3);
  for (let second = 0; second < 25; second += 1) await tick(1_000);
  assert.equal(dialled.length, 1);
  assert.equal(one.line.state, "open");
});

test("a page about to be frozen gives the line away at once, and follows when it thaws", async (t) => {
  const { tabs, shows, open } = opened(t);
  const [one, two] = await tabs(2);
  await one.happens("freeze");
  assert.equal(one.net.last.readyState, 3);
  assert.equal(two.net.sockets.length, 1);
  await two.greet();
  await one.happens("resume");
  await shows(two);
  assert.deepEqual([one.line.state, two.line.state], ["open", "open"]);
  assert.equal(open().length, 1);
});

test("a follower that is frozen is no heir, and is shown the rest when it thaws", async (t) => {
  const { tabs, shows } = opened(t);
  const [one, two, three] = await tabs(3);
  await two.happens("freeze");
  await one.ends();
  assert.deepEqual([two.net.sockets.length, three.net.sockets.length], [0, 1]);
  await three.greet();
  await two.happens("resume");
  await shows(three);
  assert.equal(two.line.state, "open");
});

test("a tab that comes back out of the browser's memory is shown what it was not told there", async (t) => {
  const { tabs, shows } = opened(t);
  const [one, two] = await tabs(2);
  two.held = { conversation: "c", epoch: "e", seq: 4 };
  await two.acts(() => two.life.dispatchEvent(Object.assign(new Event("pageshow"), { persisted: true })));
  assert.deepEqual(one.net.last.sent.at(-1), { type: "conversation.open", conversation: "c", epoch: "e", seq: 4 });
  await shows(one);
  assert.deepEqual([two.line.state, two.of("welcome").length], ["open", 2]);
});

test("a lost line is lost for all, and found again for all", async (t) => {
  const { tabs, tick, shows } = opened(t);
  const [one, two] = await tabs(2);
  one.net.last.ends(1006);
  await turns();
  assert.deepEqual([one.line.state, two.line.state], ["reconnecting", "reconnecting"]);
  assert.equal(two.line.send({ type: "conversation.list" }), false);
  await tick(250);
  await one.greet();
  await shows(one);
  assert.deepEqual([one.line.state, two.line.state], ["open", "open"]);
  assert.equal(one.net.sockets.length, 2);
});

test("somebody who looks at any tab spares the line its wait", async (t) => {
  const { tabs, shown } = opened(t);
  const [one, two] = await tabs(2);
  one.net.last.ends(1006);
  await turns();
  shown.hidden = true;
  await two.happens("visibilitychange");
  assert.equal(one.net.sockets.length, 1);
  shown.hidden = false;
  await two.happens("visibilitychange");
  assert.equal(one.net.sockets.length, 2);
});

test("a line does not sleep while somebody looks at any of its tabs", async (t) => {
  const { tabs, tick, shown } = opened(t);
  const [one, two] = await tabs(2);
  shown.hidden = true;
  two.life.document = { hidden: false };
  const pinged = async () => {
    for (let second = 0; second < 30; second += 1) await tick(1_000);
    one.net.last.says({ type: "pong" });
    return one.net.last.last("ping");
  };
  assert.deepEqual(await pinged(), { type: "ping" });
  two.life.document.hidden = true;
  assert.deepEqual(await pinged(), { type: "ping", hidden: true });
});

test("a server that wants no more of one tab is asked by the next with its own credentials", async (t) => {
  const { tabs } = opened(t);
  const [one, two] = await tabs(2);
  one.net.last.ends(4403);
  await turns();
  assert.equal(one.line.state, "closed");
  assert.equal(two.hellos, 1);
  await two.greet();
  assert.equal(two.line.state, "open");
  await one.open();
  assert.equal(one.net.sockets.length, 1);
  assert.equal(two.net.last.sent.at(-1).type, "conversation.open");
});

test("who speaks for somebody else has another line", async (t) => {
  const { tabs, tab, open } = opened(t);
  const [one] = await tabs(1);
  const other = tab({ group: () => "leo" });
  await other.open();
  await other.greet({ conversation: "leo's" });
  assert.equal(open().length, 2);
  one.net.last.says(said(1));
  await turns();
  assert.equal(other.of("event").length, 0);
});

test("before it is known for whom, each has a line; then one remains", async (t) => {
  const { tab, open, shows } = opened(t);
  let known = "";
  const [one, two] = [tab({ group: () => known }), tab({ group: () => known })];
  await one.open();
  await two.open();
  assert.equal(open().length, 2);
  known = "mia";
  await one.acts(() => { one.net.last.accept(); one.net.last.says(welcome()); });
  await two.acts(() => { two.net.last.accept(); two.net.last.says(welcome()); });
  assert.equal(open().length, 1);
  await shows(one);
  assert.deepEqual([one.line.state, two.line.state], ["open", "open"]);
  one.net.last.says(said(1));
  await turns();
  assert.deepEqual([one.of("event").length, two.of("event").length], [1, 1]);
});

test("a line that was given to another visitor than before finds that one's tabs", async (t) => {
  const { tabs, tab, tick, open } = opened(t);
  let who = "old";
  const [one, two] = await tabs(2, [{ group: () => who }, { group: () => "old" }]);
  const three = tab({ group: () => "new" });
  await three.open();
  await three.greet();
  one.net.last.ends(1006);
  await turns();
  who = "new";
  await tick(250);
  await one.acts(() => { one.net.last.accept(); one.net.last.says(welcome()); });
  assert.equal(three.net.last.sent.at(-1).type, "conversation.open");
  assert.equal(open().length, 2);
  await two.greet();
  assert.equal(two.line.state, "open");
});

test("opening twice joins once", async (t) => {
  const { tab, dialled } = opened(t);
  const [one, two] = [tab(), tab()];
  await one.open();
  await one.greet();
  await two.acts(() => { two.line.open(); two.line.open(); });
  assert.equal(dialled.length, 1);
  assert.deepEqual(one.net.last.sent.map((frame) => frame.type), ["hello", "conversation.open"]);
});

test("where locks are denied each tab has its own line", async (t) => {
  const { tab, open } = opened(t);
  const denied = () => Promise.reject(new DOMException("denied", "SecurityError"));
  const made = [tab(), tab()];
  for (const each of made) {
    each.page.locks.request = denied;
    await each.open();
    await each.greet();
    assert.equal(each.line.state, "open");
  }
  assert.equal(open().length, 2);
});

test("a tab that begins anew leaves the others what they have", async (t) => {
  const { tabs, dialled } = opened(t);
  let who = "mia";
  const [one, two] = await tabs(2, [{ group: () => who }]);
  who = "leo";
  await one.acts(() => one.line.restart());
  await one.greet({ conversation: "leo's" });
  assert.equal(dialled.length, 3);
  await two.greet();
  two.net.last.says(said(1));
  await turns();
  assert.deepEqual([one.of("event").length, two.of("event").length], [0, 1]);
});

test("a closed tab says and hears nothing more", async (t) => {
  const { tabs, tick } = opened(t);
  const [one, two] = await tabs(2);
  two.line.close();
  const before = two.told.length;
  one.net.last.says(said(1));
  for (const name of ["freeze", "resume", "online", "visibilitychange"]) await two.happens(name);
  await tick(60_000);
  assert.equal(two.told.length, before);
  assert.equal(two.net.sockets.length, 0);
  assert.equal(two.line.send({ type: "ping" }), false);
});
