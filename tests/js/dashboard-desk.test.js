// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { decode } from "../../static/js/dashboard/frames.js";
import { Desk } from "../../static/js/dashboard/desk.js";
import { threadLines } from "../../static/js/dashboard/lines.js";
import { Preferences } from "../../static/js/dashboard/preferences.js";
import { allowed } from "../../static/js/dashboard/room.js";
import { Connection } from "../../static/js/wire/connection.js";
import { storage } from "./storage.js";

const QUEUE = { kind: "queue", reason: "button" };
const MINE = { kind: "agent", agent: "kim", name: "Kim" };
const ME = { id: "kim", name: "Kim", online: true };

/** The network's end: what was sent, and a way to answer. Only the browser's socket is replaced. */
class Server {
  /** @type {any[]} */
  sent = [];
  /** @type {any} */
  socket = null;
  /** @type {PromiseWithResolvers<any>} */
  #dialled = withResolvers();

  constructor() {
    const dialled = (/** @type {any} */ socket) => this.#dialled.resolve(socket);
    const { sent } = this;
    this.socketClass = class {
      readyState = 0;
      constructor() {
        dialled(this);
      }
      /** @param {string} text */
      send(text) {
        sent.push(JSON.parse(text));
      }
      close() {
        this.readyState = 3;
      }
    };
  }

  /** @param {object[]} rows */
  async greet(rows) {
    this.socket = await this.#dialled.promise;
    this.#dialled = withResolvers();
    this.socket.readyState = 1;
    this.socket.onopen();
    this.says({ type: "inbox", me: ME, rows, agents: [ME], heartbeat_s: 30, now: Date.now() });
  }

  /** @param {object} frame */
  says(frame) {
    this.socket.onmessage({ data: JSON.stringify(frame) });
  }

  /** @param {string} type */
  last(type) {
    return this.sent.filter((frame) => frame.type === type).at(-1);
  }
}

/** @returns {PromiseWithResolvers<any>} */
function withResolvers() {
  /** @type {any} */
  const parts = {};
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
}

/** @param {object} [fields] */
const row = (fields = {}) => ({
  conversation: "c",
  seq: 3,
  customer: "Mia",
  verified: true,
  status: "open",
  owner: QUEUE,
  last_line: "hi",
  last_author: "customer",
  at: 1,
  locale: "en",
  site: "Lantern",
  waiting_since: 1,
  ...fields,
});

/** @param {object} [fields] @param {object[]} [events] */
const watching = (fields = {}, events = []) => ({
  type: "watching",
  row: row(fields),
  page: { conversation: "c", epoch: "e", upto: 3, events },
  panel: { customer: "x", name: "Mia", verified: true },
});

/** @param {number} seq @param {string} author @param {object} [fields] */
const message = (seq, author, fields = {}) => ({
  type: "event",
  conversation: "c",
  seq,
  kind: "message",
  at: seq,
  message: { id: `m${seq}`, place: seq, author, name: author, text: `text ${seq}`, at: seq, ...fields },
});

/** @param {import("node:test").TestContext} t @param {object} [fields] */
async function opened(t, fields = {}) {
  const server = new Server();
  const line = new Connection({
    url: "ws://here",
    hello: () => ({ type: "hello" }),
    decode,
    socketClass: /** @type {any} */ (server.socketClass),
  });
  let id = 0;
  const desk = new Desk(line, new Preferences("kim"), () => `id${(id += 1)}`);
  /** @type {any[]} */
  const notices = [];
  /** @type {any[]} */
  const queued = [];
  desk.addEventListener("notice", (event) => notices.push(/** @type {CustomEvent} */ (event).detail));
  desk.addEventListener("queued", (event) => queued.push(.../** @type {CustomEvent} */ (event).detail));
  t.after(() => line.close());
  line.open();
  await server.greet([row(fields)]);
  desk.open("c");
  server.says(watching(fields, [message(1, "customer"), message(2, "assistant"), message(3, "customer")]));
  return { server, line, desk, notices, queued };
}

/** @param {Desk} desk */
const may = (desk) => allowed(/** @type {import("../../static/js/dashboard/room.js").Room} */ (desk.room), "kim");

test("the owner shown is the server's word: a take is pending until its event comes", async (t) => {
  const { server, desk } = await opened(t);
  desk.act("take", "c");
  assert.equal(desk.verbOf("c"), "take");
  assert.equal(may(desk).write, false);
  server.says({ type: "ack", id: "id1", seq: 4, conversation: "c", at: 1 });
  assert.equal(desk.verbOf("c"), "take");
  server.says({ type: "event", conversation: "c", seq: 4, kind: "owner", at: 4, owner: MINE });
  assert.equal(desk.verbOf("c"), null);
  assert.equal(may(desk).write, true);
});

test("a lost race names who was first and changes nothing else", async (t) => {
  const { server, desk, notices } = await opened(t);
  desk.act("take", "c");
  server.says({
    type: "refused",
    code: "already_taken",
    message: "Ana",
    id: "id1",
    of: "conversation.take",
    conversation: "c",
  });
  assert.deepEqual(notices, [{ key: "toast.already_taken", values: { name: "Ana" }, tone: "bad" }]);
  assert.equal(desk.verbOf("c"), null);
  assert.equal(desk.room?.timeline.owner.kind, "queue");
});

test("pressing twice asks once", async (t) => {
  const { server, desk } = await opened(t);
  desk.act("take", "c");
  desk.act("take", "c");
  assert.equal(server.sent.filter((frame) => frame.type === "conversation.take").length, 1);
});

test("a verb without a connection is refused at once", async (t) => {
  const { desk, line, notices } = await opened(t);
  line.close();
  desk.act("take", "c");
  assert.deepEqual(
    notices.map((notice) => notice.key),
    ["toast.offline"],
  );
  assert.equal(desk.verbOf("c"), null);
});

test("a resolved conversation offers its undoing", async (t) => {
  const { server, desk, notices } = await opened(t, { owner: MINE });
  desk.act("resolve", "c");
  server.says({ type: "ack", id: "id1", seq: 4, conversation: "c", at: 1 });
  server.says({ type: "event", conversation: "c", seq: 4, kind: "status", at: 4, status: "resolved" });
  assert.deepEqual(notices, [{ key: "toast.resolved", tone: "good", conversation: "c", again: "reopen" }]);
  assert.deepEqual(may(desk), { take: false, hand_back: false, resolve: false, reopen: true, write: false });
});

test("a message is shown at once and stays one when it is stored", async (t) => {
  const { server, desk } = await opened(t, { owner: MINE });
  desk.send("hello");
  assert.equal(desk.room?.timeline.pending.length, 1);
  server.says(message(4, "agent", { client_id: "id1", text: "hello" }));
  server.says({ type: "ack", id: "id1", seq: 4, conversation: "c", at: 1 });
  assert.equal(desk.room?.timeline.pending.length, 0);
  assert.equal(desk.room?.timeline.items.length, 4);
});

test("a message that was refused can be sent again or discarded", async (t) => {
  const { server, desk } = await opened(t, { owner: MINE });
  desk.send("hello");
  server.says({
    type: "refused",
    code: "not_owner",
    message: "Ana owns it",
    id: "id1",
    of: "message.send",
    conversation: "c",
  });
  assert.equal(desk.room?.timeline.pending[0].state, "failed");
  desk.retry("id1");
  assert.deepEqual(server.last("message.send"), { type: "message.send", id: "id1", conversation: "c", text: "hello" });
  desk.discard("id1");
  assert.equal(desk.room?.timeline.pending.length, 0);
});

test("after a lost connection it watches again and sends what has no answer, under the same id", async (t) => {
  const { server, desk, line } = await opened(t, { owner: MINE });
  desk.send("hello");
  line.restart();
  server.sent.length = 0;
  await server.greet([row({ owner: MINE })]);
  assert.deepEqual(
    server.sent.map((frame) => frame.type),
    ["hello", "conversation.watch", "message.send"],
  );
  assert.equal(server.last("message.send").id, "id1");
});

test("a conversation that was looked away from is healed when it is opened again, whatever was missed", async (t) => {
  const { server, desk } = await opened(t);
  server.says({ type: "turn.started", conversation: "c", turn: "t", part: 1, handle: 1, place: 4 });
  server.says({ type: "delta", handle: 1, offset: 0, text: "Half an ans" });
  desk.open("d");
  desk.open("c");
  assert.deepEqual(server.last("conversation.watch"), { type: "conversation.watch", conversation: "c" });
  const removed = message(2, "assistant", { text: "", state: "removed" });
  const events = [message(1, "customer"), { ...removed, seq: 6, kind: "message_removed" }, message(3, "customer"), message(7, "agent")];
  server.says({ ...watching(), page: { conversation: "c", epoch: "e", upto: 7, events } });
  const { timeline } = /** @type {import("../../static/js/dashboard/room.js").Room} */ (desk.room);
  const texts = timeline.items.filter((item) => item.kind === "message").map(({ message: { text } }) => text);
  assert.deepEqual(texts, ["text 1", "text 3", "text 7"]);
  assert.equal(timeline.live, null);
  assert.equal(timeline.seq, 7);
});

test("what has no answer outlives a reload, is sent again under its id, and is shown where it was written", async (t) => {
  const kept = storage();
  Object.assign(globalThis, { sessionStorage: kept });
  t.after(() => Reflect.deleteProperty(globalThis, "sessionStorage"));
  const before = await opened(t, { owner: MINE });
  before.desk.send("on its way");
  before.desk.send("too long");
  before.desk.send("stored");
  const ids = before.server.sent.filter((frame) => frame.type === "message.send").map((frame) => frame.id);
  before.server.says({ type: "refused", code: "too_long", message: "", id: ids[1], of: "message.send" });
  before.server.says({ type: "ack", id: ids[2], seq: 4, conversation: "c", at: 4 });
  before.server.says(message(4, "agent", { client_id: ids[2] }));
  before.line.close();
  const { server, desk } = await opened(t, { owner: MINE });
  assert.deepEqual(server.sent.filter((frame) => frame.type === "message.send"), [{ type: "message.send", id: ids[0], conversation: "c", text: "on its way" }]);
  assert.deepEqual(desk.room?.timeline.pending.map(({ text, state, error }) => [text, state, error]), [["on its way", "sending", null], ["too long", "failed", "too_long"]]);
  server.says(message(4, "agent", { client_id: ids[0] }));
  desk.discard(ids[1]);
  assert.deepEqual(desk.room?.timeline.pending, []);
  assert.equal(kept.getItem("chatsvc.unsent.kim"), null);
});

test("what another tab of the agent reads is read here, and no tab answers the other for ever", async (t) => {
  const kept = storage();
  Object.assign(globalThis, { localStorage: kept });
  t.after(() => Reflect.deleteProperty(globalThis, "localStorage"));
  const { server, desk } = await opened(t, { owner: MINE });
  server.says({ type: "inbox.row", row: row({ conversation: "d", owner: MINE, at: 2 }) });
  assert.equal(desk.unreadOf("d"), 1);
  const { read: _, ...rest } = desk.state.unread.d;
  desk.follow(JSON.stringify({ d: { ...rest, count: 0, read: 3 } }));
  assert.equal(desk.unreadOf("d"), 0);
  assert.equal(JSON.parse(kept.kept.get("chatsvc.unread.kim") ?? "{}").d.read, 3);
  const before = desk.state;
  desk.follow(JSON.stringify(before.unread));
  desk.follow(null);
  desk.follow(JSON.stringify({ d: { ...rest, count: 1, read: null } }));
  assert.equal(desk.state, before);
});

test("what comes into the queue is announced, in a conversation never seen before too", async (t) => {
  const { server, queued } = await opened(t, { owner: MINE });
  server.says({ type: "inbox.row", row: row({ conversation: "new", owner: QUEUE }) });
  assert.deepEqual(
    queued.map((one) => one.conversation),
    ["new"],
  );
});

test("a conversation that may not be seen says so", async (t) => {
  const { server, desk } = await opened(t);
  desk.open("other");
  server.says({ type: "refused", code: "not_found", message: "no", of: "conversation.watch", conversation: "other" });
  assert.equal(desk.room?.phase, "failed");
  assert.equal(desk.room?.error, "not_found");
});

test("a conversation that cannot be shown for now is asked for again, and what is shown stays", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { server, desk } = await opened(t);
  const watched = () => server.sent.filter((frame) => frame.type === "conversation.watch").length;
  const before = watched();
  for (const [refusal, wait_ms] of /** @type {[object, number][]} */ ([[{ code: "unavailable" }, 3_000], [{ code: "slow_down", retry_after_s: 7 }, 7_000]])) {
    const asked = watched();
    server.says({ type: "refused", message: "", of: "conversation.watch", conversation: "c", ...refusal });
    assert.equal(desk.room?.phase, "ready");
    t.mock.timers.tick(wait_ms - 1);
    assert.equal(watched(), asked);
    t.mock.timers.tick(1);
    assert.equal(watched(), asked + 1);
  }
  server.says({ type: "refused", code: "unavailable", message: "", of: "conversation.watch", conversation: "c" });
  desk.leave();
  t.mock.timers.tick(10_000);
  assert.equal(watched(), before + 3);
});

test("older messages that were refused for now are asked for again, once", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { server, desk } = await opened(t);
  desk.open("d");
  const page = (/** @type {object[]} */ events) => ({ conversation: "d", epoch: "e", upto: 3, events, earlier: true });
  server.says({ ...watching({ conversation: "d" }), page: page([{ ...message(3, "customer"), conversation: "d" }]) });
  const asked = () => server.sent.filter((frame) => frame.type === "history.fetch").length;
  desk.fetchEarlier();
  const refused = { type: "refused", code: "slow_down", message: "", of: "history.fetch", conversation: "d", retry_after_s: 2 };
  server.says(refused);
  t.mock.timers.tick(2_000);
  assert.equal(asked(), 2);
  server.says({ type: "history", before: 3, after: null, page: page([{ ...message(2, "assistant"), conversation: "d" }]) });
  server.says(refused);
  t.mock.timers.tick(10_000);
  assert.equal(asked(), 2);
});

test("the assistant's words stream into the thread and a takeover labels where they were cut", async (t) => {
  const { server, desk } = await opened(t, { owner: { kind: "assistant" } });
  server.says({ type: "event", conversation: "c", seq: 4, kind: "turn_opened", at: 4, turn: "u", part: 1 });
  server.says({ type: "turn.started", conversation: "c", turn: "u", part: 1, handle: 1, place: 4 });
  server.says({ type: "delta", conversation: "c", handle: 1, offset: 0, text: "Your order" });
  const timeline = () => /** @type {import("../../static/js/dashboard/room.js").Room} */ (desk.room).timeline;
  const live = threadLines(timeline(), null, () => "").at(-1);
  assert.equal(live?.kind === "row" && live.row.kind === "live" && live.row.live.text, "Your order");
  server.says({ type: "turn.ended", conversation: "c", handle: 1, end: "taken_over", length: 10 });
  server.says({ type: "event", conversation: "c", seq: 5, kind: "owner", at: 5, owner: MINE });
  server.says({
    ...message(6, "assistant"),
    message: {
      id: "m6",
      place: 4,
      author: "assistant",
      name: "A",
      text: "Your order",
      at: 6,
      state: "taken_over",
      turn: "u",
      part: 1,
    },
  });
  const cut = threadLines(timeline(), null, () => "").find((one) => one.key === live?.key);
  assert.equal(cut?.kind === "row" && cut.cutBy, "Kim");
});

test("messages of one speaker stand together, and the unread line before the first new one of the customer", async (t) => {
  const { server, desk } = await opened(t);
  server.says(message(4, "customer", { at: 4 }));
  const lines = threadLines(/** @type {any} */ (desk.room).timeline, 2, () => "");
  assert.deepEqual(
    lines.map((one) => (one.kind === "row" ? `${one.key} ${one.first} ${one.last}` : one.kind)),
    ["place 1 true true", "place 2 true true", "unread", "place 3 true false", "place 4 false true"],
  );
});
