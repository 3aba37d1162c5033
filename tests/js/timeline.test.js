// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { decode } from "../../static/js/wire/frames.js";
import * as timeline from "../../static/js/wire/timeline.js";
import { generator } from "./random.js";
import { Script } from "./script.js";

/** @typedef {import("../../static/js/wire/timeline.js").Timeline} Timeline */
/** @typedef {import("../../static/js/wire/frames.js").ServerFrame} ServerFrame */

/** @param {object} frame */
const frameOf = (frame) => /** @type {ServerFrame} */ (decode(JSON.stringify(frame)));
/** @param {Timeline} state @param {object[]} frames */
const run = (state, ...frames) => frames.reduce((next, frame) => timeline.reduce(next, frameOf(frame)), state);
/** @param {Timeline} state */
const seen = (state) => ({ rows: timeline.rows(state).map(bare), owner: state.owner, status: state.status, seq: state.seq });
/** @param {import("../../static/js/wire/timeline.js").Row} row */
const bare = (row) => ("version" in row ? { ...row, version: 0 } : row);

const page = (upto = 0, events = /** @type {object[]} */ ([]), after = /** @type {number | null} */ (null)) => ({ conversation: "c", epoch: "e", upto, events, after });
const welcome = (upto = 0, events = /** @type {object[]} */ ([]), more = {}) => ({
  type: "welcome", conversation: "c", customer: "k", name: "", verified: false, status: "open",
  owner: { kind: "assistant", name: "Lumi" }, page: page(upto, events), assistant: true, availability: { online: true },
  heartbeat_s: 30, now: 0, ...more,
});
const said = (seq = 1, text = "hi", more = {}) => ({
  type: "event", conversation: "c", seq, kind: "message", at: seq,
  message: { id: `m${seq}`, place: seq, author: "customer", name: "", text, at: seq, ...more },
});
const texts = (/** @type {Timeline} */ state) => timeline.rows(state).map((row) => (
  row.kind === "message" ? row.message.text : row.kind === "live" ? `…${row.live.text}` : row.kind === "pending" ? `>${row.pending.text}` : row.kind
));
const open = () => run(timeline.empty("c"), welcome());

test("an event beyond a hole waits, and the hole is named", () => {
  const state = run(open(), said(1, "one"), said(3, "three"));
  assert.deepEqual(texts(state), ["one"]);
  assert.deepEqual(timeline.gap(state), { conversation: "c", after: 1 });
  const filled = run(state, { type: "history", page: page(3, [said(2, "two"), said(3, "three")], 1), after: 1 });
  assert.deepEqual(texts(filled), ["one", "two", "three"]);
  assert.equal(timeline.gap(filled), null);
});

test("events that came before the first page are applied after it, once", () => {
  const state = run(timeline.empty("c"), said(2, "two"), said(1, "one"), said(3, "three"));
  assert.deepEqual(texts(state), []);
  assert.equal(timeline.gap(state), null);
  assert.deepEqual(texts(run(state, welcome(2, [said(1, "one"), said(2, "two")]))), ["one", "two", "three"]);
});

test("frames of another conversation change nothing", () => {
  const state = open();
  assert.equal(run(state, { ...said(1), conversation: "other" }), state);
});

test("an answer takes its turn's place, also when the customer wrote meanwhile", () => {
  const state = run(
    open(), said(1, "first"), { type: "event", conversation: "c", seq: 2, kind: "turn_opened", at: 2, turn: "u", part: 1 },
    { type: "turn.started", conversation: "c", turn: "u", part: 1, handle: 1, place: 2 },
    { type: "delta", handle: 1, offset: 0, text: "Ans" }, said(3, "second"),
  );
  assert.deepEqual(texts(state), ["first", "…Ans", "second"]);
  const done = run(state, { type: "turn.ended", handle: 1, end: "finished", length: 6 }, said(4, "Answer", { place: 2, author: "assistant", turn: "u", part: 1 }));
  assert.deepEqual(texts(done), ["first", "Answer", "second"]);
});

test("a repeated delta adds nothing and an overlapping one adds its end", () => {
  const start = { type: "turn.started", conversation: "c", turn: "u", part: 1, handle: 1, place: 1 };
  const state = run(
    open(), start, { type: "delta", handle: 1, offset: 0, text: "ab" }, { type: "delta", handle: 1, offset: 0, text: "ab" },
    { type: "delta", handle: 1, offset: 1, text: "bcd" },
  );
  assert.deepEqual(texts(state), ["…abcd"]);
});

test("a hole in the live text asks for it, and the answer fills it", () => {
  const start = { type: "turn.started", conversation: "c", turn: "u", part: 1, handle: 1, place: 1 };
  const state = run(open(), start, { type: "delta", handle: 1, offset: 2, text: "cd" });
  assert.deepEqual(texts(state), ["…"]);
  assert.deepEqual(timeline.gap(state), { conversation: "c", after: 0 });
  const live = { turn: "u", part: 1, handle: 1, place: 1, text: "ab" };
  const filled = run(state, { type: "history", page: page(1, [], 0), after: 0, live });
  assert.deepEqual(texts(filled), ["…abcd"]);
  assert.equal(timeline.gap(filled), null);
});

test("stopping keeps the text up to the length the server kept", () => {
  const start = { type: "turn.started", conversation: "c", turn: "u", part: 1, handle: 1, place: 1 };
  const state = run(open(), start, { type: "delta", handle: 1, offset: 0, text: "abcdef" }, { type: "turn.ended", handle: 1, end: "stopped", length: 3 }, { type: "delta", handle: 1, offset: 6, text: "gh" });
  assert.deepEqual(texts(state), ["…abc"]);
  assert.deepEqual(timeline.gap(state), { conversation: "c", after: 0 });
});

test("a superseded turn leaves nothing behind", () => {
  const start = { type: "turn.started", conversation: "c", turn: "u", part: 1, handle: 1, place: 1 };
  assert.deepEqual(texts(run(open(), start, { type: "turn.ended", handle: 1, end: "superseded" })), []);
});

test("a handle used again belongs to its new turn", () => {
  const start = { type: "turn.started", conversation: "c", turn: "u", part: 1, handle: 1, place: 1 };
  const state = run(open(), start, { type: "turn.ended", handle: 1, end: "superseded" }, { ...start, turn: "v", place: 5 }, { type: "delta", handle: 1, offset: 0, text: "new" });
  assert.deepEqual(texts(state), ["…new"]);
});

test("our message is shown at once, and once, whichever of ack and event comes first", () => {
  const mine = { id: "c-1", text: "hello", at: 1 };
  const ack = { type: "ack", id: "c-1", seq: 1, conversation: "c", at: 1 };
  const event = said(1, "hello", { client_id: "c-1" });
  const sending = timeline.compose(open(), mine);
  assert.deepEqual(texts(sending), [">hello"]);
  assert.deepEqual(texts(run(sending, ack, event)), ["hello"]);
  assert.deepEqual(texts(run(sending, event, ack)), ["hello"]);
  assert.deepEqual(texts(run(sending, event)), ["hello"]);
  assert.deepEqual(texts(timeline.compose(run(sending, event), mine)), ["hello"]);
});

test("an acknowledged message whose event was lost is fetched", () => {
  const state = run(timeline.compose(open(), { id: "c-1", text: "hello", at: 1 }), { type: "ack", id: "c-1", seq: 1, conversation: "c", at: 1 });
  assert.deepEqual(texts(state), [">hello"]);
  assert.deepEqual(timeline.gap(state), { conversation: "c", after: 0 });
});

test("a refused message stays, says why, and can be sent again or dropped", () => {
  const refused = { type: "refused", code: "too_long", message: "", id: "c-1", of: "message.send" };
  const state = run(timeline.compose(open(), { id: "c-1", text: "x", at: 1 }), refused);
  assert.equal(state.pending[0].state, "failed");
  assert.equal(state.pending[0].error, "too_long");
  assert.equal(timeline.retry(state, "c-1").pending[0].state, "sending");
  assert.deepEqual(texts(timeline.discard(state, "c-1")), []);
});

test("a removed message is no longer shown, and an older page does not bring it back", () => {
  const gone = { type: "event", conversation: "c", seq: 2, kind: "message_removed", at: 2, message: { id: "m1", place: 1, author: "customer", name: "", text: "", at: 1, state: "removed" } };
  const state = run(open(), said(1, "secret"), gone);
  assert.deepEqual(texts(state), []);
  assert.deepEqual(texts(run(state, { type: "history", page: page(1, [said(1, "secret")], 0), after: 0 })), []);
});

test("an older page goes in front and leaves owner, status and number alone", () => {
  const owner = { type: "event", conversation: "c", seq: 2, kind: "owner", at: 2, owner: { kind: "agent", name: "Old" } };
  const state = run(timeline.empty("c"), welcome(50, [said(50, "fifty")], { page: { ...page(50, [said(50, "fifty")]), earlier: true } }));
  assert.equal(state.earlier, true);
  assert.equal(state.oldest, 50);
  const older = run(state, { type: "history", page: page(50, [said(1, "one"), owner]), before: 50 });
  assert.deepEqual(texts(older), ["one", "owner", "fifty"]);
  assert.deepEqual([older.owner.name, older.seq, older.oldest, older.earlier], ["Lumi", 50, 1, false]);
});

test("another epoch, or a gap too long to fill, starts anew and keeps what is unsent", () => {
  const state = timeline.compose(run(open(), said(1, "old")), { id: "c-9", text: "mine", at: 1 });
  const other = { ...page(9, [said(9, "new")]), epoch: "e2" };
  assert.deepEqual(texts(run(state, welcome(9, [], { page: other }))), ["new", ">mine"]);
  assert.deepEqual(texts(run(state, welcome(900, [said(900, "far")]))), ["far", ">mine"]);
  assert.deepEqual(texts(run(state, { type: "history", page: page(900, [said(900, "far")]), after: 1 })), ["far", ">mine"]);
  assert.deepEqual(texts(run(state, welcome(2, [], { page: page(2, [said(2, "next")], 1) }))), ["old", "next", ">mine"]);
});

test("someone's typing ends with their message", () => {
  const state = run(open(), { type: "typing", conversation: "c", author: "agent", name: "Kim" });
  assert.deepEqual(state.typing, { author: "agent", name: "Kim" });
  assert.equal(run(state, said(1, "hi")).typing?.name, "Kim");
  assert.equal(run(state, said(1, "hi", { author: "agent" })).typing, null);
});

test("loss, repeats and disorder end in the state of an undisturbed line", () => {
  for (let seed = 1; seed <= 400; seed += 1) {
    const random = generator(seed);
    const script = new Script(random);
    const undisturbed = script.frames.reduce(timeline.reduce, run(timeline.empty("c"), welcome()));
    let state = run(timeline.empty("c"), welcome());
    for (const { frame, sent } of script.disturbed()) {
      state = timeline.reduce(state, frame);
      const missing = timeline.gap(state);
      if (missing !== null && random.below(3) === 0) state = timeline.reduce(state, script.history(missing.after, sent));
    }
    if (random.below(4) === 0) state = timeline.reduce(state, script.welcome(state));
    else state = timeline.reduce(state, script.history(state.seq, script.frames.length));
    assert.deepEqual(seen(state), seen(undisturbed), `seed ${seed}`);
    assert.equal(timeline.gap(state), null, `seed ${seed}`);
  }
});
