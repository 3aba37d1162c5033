// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { emptyRoom, reduceRoom } from "../../static/js/dashboard/room.js";
import { traceOf, withTraces } from "../../static/js/dashboard/traces.js";
import { figures } from "../../static/js/dashboard/waterfall.js";
import { Words } from "../../static/js/dashboard/catalog.js";
import english from "../../static/js/dashboard/locale/en.json" with { type: "json" };

const words = new Words("en", english);
/** @param {string} turn @param {number|null} painted_ms @param {number} [part] */
const trace = (turn, painted_ms, part = 1) => ({ turn, part, stages: [], marks: {}, painted_ms, added_ms: 4.25 });

test("traces are kept by turn and part, the oldest first, and one with its paint is newer", () => {
  const read = withTraces(new Map(), [trace("a", null), trace("a", 90, 2), trace("b", 300)]);
  const all = withTraces(read, [trace("b", null), trace("c", null)]);
  assert.deepEqual([...all.values()].map(({ turn, part, painted_ms }) => [turn, part, painted_ms]), [["a", 1, null], ["a", 2, 90], ["b", 1, 300], ["c", 1, null]]);
  assert.equal(traceOf(withTraces(all, [trace("a", 70)]), { turn: "a", part: 1 })?.painted_ms, 70);
  assert.equal(traceOf(all, { turn: null, part: null }), null);
});

test("a waterfall of the room becomes the trace of its answer", () => {
  const frame = { type: "waterfall", conversation: "c", ...trace("a", null) };
  const room = reduceRoom(emptyRoom("c"), /** @type {any} */ (frame));
  assert.equal(traceOf(room.traces, { turn: "a", part: 1 })?.added_ms, 4.25);
  assert.equal(reduceRoom(emptyRoom("d"), /** @type {any} */ (frame)).traces.size, 0);
});

test("what the customer saw and what we added are told apart", () => {
  assert.equal(figures(trace("a", 480.4), words), "The customer saw it after 480 ms · we added 4.3 ms");
  const sent = { ...trace("a", null), stages: [{ name: "first_frame", start_ms: 20, ms: 2, note: "" }] };
  assert.equal(figures(sent, words), "First text sent after 22 ms · we added 4.3 ms");
  assert.equal(figures({ ...trace("a", null), added_ms: null }, words), "");
});
