// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { Paints } from "../../static/js/widget/paints.js";
import { empty, reduce } from "../../static/js/wire/timeline.js";

/** A conversation whose place 1 is our question `q`. */
const line = () => {
  const message = { id: "m", place: 1, author: "customer", name: "", text: "?", at: 0, state: "complete", client_id: "q", turn: null, part: null, sources: [] };
  const event = { type: "event", conversation: "c", seq: 1, kind: "message", at: 0, message, owner: null, status: null, turn: null, part: null };
  const page = { conversation: "c", epoch: "e", upto: 1, events: [event], earlier: false, after: null };
  const welcome = { type: "welcome", conversation: "c", page, live: null, owner: empty("c").owner, status: "open", availability: null, queue_position: null };
  return reduce(empty("c"), /** @type {any} */ (welcome));
};

/** @param {import("node:test").TestContext} t */
function reports(t) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  /** @type {object[]} */
  const sent = [];
  let now = 0;
  const paints = new Paints((frame) => sent.push(frame) > 0, () => now);
  const pass = (/** @type {number} */ ms) => {
    now += ms;
    t.mock.timers.tick(ms);
  };
  return { paints, sent, pass };
}

test("the first paint tells the time since submit, later ones only how far, at most four a second", (t) => {
  const { paints, sent, pass } = reports(t);
  paints.submitted("q");
  pass(120);
  paints.started({ turn: "u", handle: 7, place: 2 });
  pass(30.06);
  paints.painted(line(), 2, 4);
  paints.painted(line(), 2, 9);
  pass(100);
  paints.painted(line(), 2, 15);
  assert.deepEqual(sent, [{ type: "turn.painted", handle: 7, upto: 4, ms: 150.1 }]);
  pass(200);
  assert.deepEqual(sent.slice(1), [{ type: "turn.painted", handle: 7, upto: 15 }]);
  pass(1_000);
  paints.painted(line(), 2, 15);
  assert.equal(sent.length, 2);
});

test("no time is told where the question is not ours or nobody could see the page", (t) => {
  const { paints, sent, pass } = reports(t);
  paints.started({ turn: "u", handle: 7, place: 2 });
  paints.painted(line(), 2, 4);
  paints.submitted("q");
  pass(10);
  paints.hidden();
  paints.started({ turn: "v", handle: 8, place: 3 });
  paints.painted(line(), 3, 4);
  assert.deepEqual(sent, [{ type: "turn.painted", handle: 7, upto: 4 }, { type: "turn.painted", handle: 8, upto: 4 }]);
});

test("no time is told of an answer that waited until a person handed the conversation back", (t) => {
  const { paints, sent, pass } = reports(t);
  paints.submitted("q");
  pass(8_000);
  const owner = { kind: "assistant", name: "", agent: null, reason: "", team: null, version: 2 };
  const back = { type: "event", conversation: "c", seq: 2, kind: "owner", at: 0, message: null, owner, status: null, turn: null, part: null };
  const handedBack = reduce(line(), /** @type {any} */ (back));
  paints.started({ turn: "u", handle: 7, place: 3 });
  paints.painted(handedBack, 3, 4);
  assert.deepEqual(sent, [{ type: "turn.painted", handle: 7, upto: 4 }]);
});

test("text of answers that did not begin on this line is not reported", (t) => {
  const { paints, sent } = reports(t);
  paints.painted(line(), 2, 4);
  paints.started({ turn: "u", handle: 7, place: 2 });
  paints.stop();
  paints.painted(line(), 2, 9);
  assert.deepEqual(sent, []);
});
