// @ts-check
// Reads sequences of frames from standard input, one JSON array a line, and writes what the reducer shows after each
// frame, as the Python model says it: tests/pure/test_reducers.py compares the two.

import { createInterface } from "node:readline";

import { decode } from "../../static/js/wire/frames.js";
import { empty, gap, reduce } from "../../static/js/wire/timeline.js";

for await (const line of createInterface({ input: process.stdin })) {
  let state = empty("c");
  const views = JSON.parse(line).map((/** @type {object} */ frame) => {
    state = reduce(state, /** @type {import("../../static/js/wire/frames.js").ServerFrame} */ (decode(JSON.stringify(frame))));
    return view(state);
  });
  process.stdout.write(`${JSON.stringify(views)}\n`);
}

/** @param {import("../../static/js/wire/timeline.js").Timeline} state */
function view(state) {
  const { live, owner } = state;
  return {
    epoch: state.epoch,
    seq: state.seq,
    messages: state.items.flatMap((item) => (item.kind === "message" ? [[item.place, item.message.id, item.message.text]] : [])),
    owner: [owner.kind, owner.name],
    live: live && [live.turn, live.part, live.place, live.text],
    missing: gap(state) !== null,
  };
}
