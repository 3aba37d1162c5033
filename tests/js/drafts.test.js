// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { DRAFT_LIMIT, DraftSender, REST_MS } from "../../static/js/widget/draft-sender.js";

/** A sender on a clock that only the test moves, with a line that may be down. @param {import("node:test").TestContext} t */
function desk(t) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  /** @type {[string, number][]} */
  const told = [];
  const line = { open: true };
  const sender = new DraftSender((text, number) => {
    if (line.open) told.push([text, number]);
    return line.open;
  });
  return { sender, told, line, rest: () => t.mock.timers.tick(REST_MS), wait: t.mock.timers.tick.bind(t.mock.timers) };
}

test("a draft goes once the keys have rested", (t) => {
  const { sender, told, rest, wait } = desk(t);
  sender.written("Where");
  wait(REST_MS - 1);
  sender.written("Where is");
  wait(REST_MS - 1);
  assert.deepEqual(told, []);
  wait(1);
  assert.deepEqual(told, [["Where is", 1]]);
  sender.written("Where is it?");
  rest();
  assert.deepEqual(told.at(-1), ["Where is it?", 2]);
});

test("nothing is told twice, and blanks at the ends are nothing new", (t) => {
  const { sender, told, rest } = desk(t);
  for (const text of ["Where", " Where ", "Where is", "Where"]) {
    sender.written(text);
    if (text !== "Where is") rest();
  }
  assert.deepEqual(told, [["Where", 1]]);
});

test("what was sent is not told as a draft, nor that nothing is written any more", (t) => {
  const { sender, told, rest } = desk(t);
  sender.written("Where is it?");
  sender.sent();
  sender.written("");
  rest();
  assert.deepEqual(told, []);
  sender.written("Where is it?");
  rest();
  sender.sent();
  sender.written("");
  rest();
  assert.deepEqual(told, [["Where is it?", 1]]);
});

test("an emptied or overlong draft is told as nothing", (t) => {
  const { sender, told, rest } = desk(t);
  for (const text of ["Where", "", "Where", "x".repeat(DRAFT_LIMIT + 1)]) {
    sender.written(text);
    rest();
  }
  assert.deepEqual(told, [["Where", 1], ["", 2], ["Where", 3], ["", 4]]);
});

test("what found no line is told with the next key", (t) => {
  const { sender, told, line, rest } = desk(t);
  line.open = false;
  sender.written("Where");
  rest();
  line.open = true;
  sender.written("Where ");
  rest();
  assert.deepEqual(told, [["Where", 1]]);
});
