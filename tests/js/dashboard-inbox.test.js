// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { countRows, emptyInbox, newlyQueued, reduceInbox, visibleRows } from "../../static/js/dashboard/inbox.js";
import { countUnread, parseUnread, readElsewhere, unreadOf } from "../../static/js/dashboard/unread.js";
import { age, clock, waitLevel } from "../../static/js/dashboard/waiting.js";
import { decode } from "../../static/js/dashboard/frames.js";

/** @typedef {import("../../static/js/wire/frames.js").ServerFrame} ServerFrame */

const ASSISTANT = { kind: "assistant" };
const QUEUE = { kind: "queue", reason: "button" };
const MINE = { kind: "agent", agent: "kim", name: "Kim" };
const ANAS = { kind: "agent", agent: "ana", name: "Ana" };

/** @param {object} frame */
const frameOf = (frame) => /** @type {ServerFrame} */ (decode(JSON.stringify(frame)));

/**
 * @param {string} conversation
 * @param {object} [fields]
 */
function row(conversation, fields = {}) {
  return {
    conversation,
    seq: 1,
    customer: "Mia Chen",
    verified: true,
    status: "open",
    owner: ASSISTANT,
    last_line: "hello",
    last_author: "customer",
    at: 100,
    locale: "en",
    site: "Lantern",
    ...fields,
  };
}

/** @param {...object} rows */
function inboxOf(...rows) {
  const me = { id: "kim", name: "Kim", online: true };
  return reduceInbox(emptyInbox(), frameOf({ type: "inbox", me, rows, agents: [me], heartbeat_s: 30, now: 1000 }));
}

/** @param {object} one */
const changed = (one) => frameOf({ type: "inbox.row", row: one });

/** @param {{ conversation: string }[]} rows */
const ids = (rows) => rows.map((one) => one.conversation);

test("who waits longest comes first, then the most recent", () => {
  const inbox = inboxOf(
    row("recent", { at: 900 }),
    row("older", { at: 300 }),
    row("waits", { owner: QUEUE, at: 200, waiting_since: 200 }),
    row("waits longer", { owner: MINE, at: 950, waiting_since: 100 }),
  );
  assert.deepEqual(ids(visibleRows(inbox, "all")), ["waits longer", "waits", "recent", "older"]);
});

test("a resolved conversation no longer waits", () => {
  const inbox = inboxOf(
    row("resolved", { status: "resolved", at: 10, waiting_since: 1 }),
    row("later", { status: "resolved", at: 20 }),
  );
  assert.deepEqual(ids(visibleRows(inbox, "resolved")), ["later", "resolved"]);
});

test("each filter shows its own rows", () => {
  const inbox = inboxOf(
    row("assistants"),
    row("queued", { owner: QUEUE }),
    row("mine", { owner: MINE }),
    row("anas", { owner: ANAS }),
    row("resolved", { owner: MINE, status: "resolved" }),
  );
  assert.deepEqual(ids(visibleRows(inbox, "waiting")), ["queued"]);
  assert.deepEqual(ids(visibleRows(inbox, "mine")), ["mine"]);
  assert.deepEqual(ids(visibleRows(inbox, "assistant")), ["assistants"]);
  assert.deepEqual(ids(visibleRows(inbox, "resolved")), ["resolved"]);
  assert.equal(countRows(inbox, "all"), 4);
});

test("a search finds rows that hold every word, in any case", () => {
  const inbox = inboxOf(
    row("a", { customer: "Mia Chen", last_line: "order 1042" }),
    row("b", { customer: "王小明", last_line: "退货" }),
  );
  assert.deepEqual(ids(visibleRows(inbox, "all", "MIA 1042")), ["a"]);
  assert.deepEqual(ids(visibleRows(inbox, "all", "退")), ["b"]);
  assert.deepEqual(ids(visibleRows(inbox, "all", "mia 退")), []);
});

test("a row older than the one shown is dropped", () => {
  const inbox = inboxOf(row("a", { seq: 5, last_line: "new" }));
  assert.equal(reduceInbox(inbox, changed(row("a", { seq: 4, last_line: "old" }))), inbox);
});

test("a row newer than a late snapshot survives it", () => {
  const me = { id: "kim", name: "Kim", online: true };
  const inbox = inboxOf(row("a", { seq: 7, last_line: "new" }), row("gone"));
  const after = reduceInbox(
    inbox,
    frameOf({ type: "inbox", me, rows: [row("a", { seq: 6 })], agents: [], heartbeat_s: 30, now: 1 }),
  );
  assert.equal(after.rows.get("a")?.last_line, "new");
  assert.deepEqual([...after.rows.keys()], ["a"]);
});

test("presence changes colleagues and the agent itself", () => {
  const inbox = reduceInbox(
    inboxOf(),
    frameOf({
      type: "presence",
      agents: [
        { id: "kim", name: "Kim", online: false },
        { id: "ana", name: "Ana", online: true },
      ],
    }),
  );
  assert.equal(inbox.me?.online, false);
  assert.equal(inbox.agents.length, 2);
});

test("a conversation is announced when it enters the queue, once", () => {
  const before = inboxOf(row("a"));
  const queued = reduceInbox(before, changed(row("a", { seq: 2, owner: QUEUE })));
  const again = reduceInbox(queued, changed(row("a", { seq: 3, owner: QUEUE, last_line: "still here" })));
  assert.deepEqual(ids(newlyQueued(before, queued)), ["a"]);
  assert.deepEqual(newlyQueued(queued, again), []);
});

test("the first snapshot announces nothing, a later one what is new in it", () => {
  const first = inboxOf(row("a", { owner: QUEUE }));
  assert.deepEqual(newlyQueued(emptyInbox(), first), []);
  assert.deepEqual(ids(newlyQueued(first, inboxOf(row("a", { owner: QUEUE }), row("b", { owner: QUEUE })))), ["b"]);
});

test("unread counts each message of the customer to a person, and none of the assistant's conversations", () => {
  let inbox = inboxOf(row("a", { owner: QUEUE, at: 1 }), row("b", { at: 1 }));
  let unread = countUnread({}, inbox, null);
  for (const seq of [2, 3]) {
    inbox = reduceInbox(inbox, changed(row("a", { owner: QUEUE, seq, at: seq })));
    inbox = reduceInbox(inbox, changed(row("b", { seq, at: seq })));
    unread = countUnread(unread, inbox, null);
  }
  assert.equal(unreadOf(unread, "a"), 3);
  assert.equal(unreadOf(unread, "b"), 0);
});

test("an owner's change is not a message", () => {
  const before = inboxOf(row("a", { owner: QUEUE, seq: 1, at: 50 }));
  const unread = countUnread({}, before, null);
  const taken = reduceInbox(before, changed(row("a", { owner: MINE, seq: 2, at: 50 })));
  assert.equal(unreadOf(countUnread(unread, taken, null), "a"), 1);
});

test("what is on screen is read, and stays read after a reload", () => {
  const inbox = inboxOf(row("a", { owner: MINE, seq: 9 }));
  const read = countUnread(countUnread({}, inbox, null), inbox, "a");
  assert.equal(unreadOf(read, "a"), 0);
  const reloaded = countUnread(parseUnread(JSON.stringify(read)), inbox, null);
  assert.equal(unreadOf(reloaded, "a"), 0);
  assert.equal(reloaded.a.read, 9);
});

test("who has waited longest is unread for as long as nobody looks, among all that an inbox holds", () => {
  const others = Array.from({ length: 1_329 }, (_, n) => row(`b${n}`, { at: n + 2 }));
  const inbox = inboxOf(row("a", { owner: QUEUE, at: 1 }), ...others);
  assert.equal(unreadOf(countUnread({}, inbox, null), "a"), 1);
});

test("what another tab has read is read, but for what has come since", () => {
  let inbox = inboxOf(row("a", { owner: QUEUE, seq: 1, at: 1 }), row("b", { owner: MINE, seq: 1, at: 1 }));
  const here = countUnread({}, inbox, null);
  const there = countUnread(here, inbox, "a");
  const both = countUnread(readElsewhere(here, there), inbox, null);
  assert.deepEqual([unreadOf(both, "a"), unreadOf(both, "b")], [0, 1]);
  inbox = reduceInbox(inbox, changed(row("a", { owner: QUEUE, seq: 2, at: 2 })));
  assert.equal(unreadOf(countUnread(readElsewhere(countUnread(here, inbox, null), there), inbox, null), "a"), 1);
});

test("what another tab has not read further changes nothing", () => {
  const inbox = inboxOf(row("a", { owner: MINE, seq: 9 }), row("b", { owner: MINE, seq: 3 }));
  const unread = countUnread({}, inbox, null);
  const read = countUnread(unread, inbox, "a");
  assert.equal(readElsewhere(read, unread), read);
  assert.equal(readElsewhere(read, read), read);
});

test("kept counts that are not readable are forgotten", () => {
  for (const text of [null, "", "not json", "[1]", '{"a":{"seq":"1"}}', "7", "null"])
    assert.deepEqual(parseUnread(text), {});
});

test("the clock turns amber after two minutes and red after five", () => {
  assert.deepEqual([0, 119_999, 120_000, 299_999, 300_000].map(waitLevel), ["calm", "calm", "amber", "amber", "red"]);
  assert.deepEqual([-5, 42_000, 725_000, 3_729_000].map(clock), ["0:00", "0:42", "12:05", "1:02:09"]);
  assert.deepEqual(
    [59_999, 60_000, 3_600_000, 90_000_000, 7 * 86_400_000].map((ms) => age(ms).unit),
    ["now", "minute", "hour", "day", "week"],
  );
});
