// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { Painter, advance } from "../../static/js/widget/painter.js";
import { generator } from "./random.js";

const FAMILY = "👩‍👩‍👧";

test("a frame shows its share of what is waiting, and at least one character", () => {
  assert.equal(advance("a".repeat(220), 0, true, 16), 16);
  assert.equal(advance("a".repeat(220), 110, true, 16), 118);
  assert.equal(advance("a".repeat(220), 219, true, 16), 220);
  assert.equal(advance("abc", 0, true, 0), 1);
  assert.equal(advance("abc", 0, true, Infinity), 3);
});

test("what lags far behind catches up faster", () => {
  assert.equal(advance("a".repeat(10_000), 0, true, 16), 2_000);
  assert.equal(advance("a".repeat(2_200), 0, true, 16), 160);
});

test("nothing waiting stays where it is", () => {
  assert.equal(advance("abc", 3, false, 16), 3);
  assert.equal(advance("ab", 3, true, 16), 2);
});

test("a character is shown whole or not at all", () => {
  assert.equal(advance(`${FAMILY}x`, 0, true, 0), FAMILY.length);
  assert.equal(advance(`ab${FAMILY}x`, 0, true, 73), 2);
  assert.equal(advance("e\u0301x", 0, true, 0), 2);
});

test("the last character of a text that grows may still become another one", () => {
  assert.equal(advance("ab", 0, false, Infinity), 1);
  assert.equal(advance("ab", 0, true, Infinity), 2);
  assert.equal(advance("a\ud83d", 1, false, Infinity), 1);
  assert.equal(advance("a👩\u200d", 1, false, Infinity), 1);
});

test("however a text comes and whenever frames fall, no character is ever shown in part", () => {
  const random = generator(21);
  for (let round = 0; round < 200; round += 1) {
    const whole = Array.from({ length: 20 }, () => random.pick(["a", "word ", "订单", FAMILY, "e\u0301", "🇩🇪", "\r\n", "👍🏽"])).join("");
    const edges = new Set([0, ...[...new Intl.Segmenter().segment(whole)].map(({ index, segment }) => index + segment.length)]);
    let [come, painted] = [0, 0];
    while (painted < whole.length) {
      // Deltas are whole code points.
      come = Math.min(whole.length, come + [...whole.slice(come)].slice(0, random.below(4)).join("").length);
      const next = advance(whole.slice(0, come), painted, come === whole.length, random.below(40));
      assert.ok(next >= painted && edges.has(next), `${JSON.stringify(whole)} at ${next}`);
      painted = next;
    }
  }
});

/**
 * A painter on frames that only the test lets fall.
 * @param {import("node:test").TestContext} t @param {boolean} [still]
 */
function painting(t, still = false) {
  let now = 1_000;
  let last = 0;
  /** @type {Map<number, (now: number) => void>} */
  const frames = new Map();
  t.mock.method(performance, "now", () => now);
  Object.assign(globalThis, {
    requestAnimationFrame: (/** @type {(now: number) => void} */ act) => {
      frames.set((last += 1), act);
      return last;
    },
    cancelAnimationFrame: (/** @type {number} */ id) => frames.delete(id),
  });
  /** @type {string[]} */
  const shown = [];
  let done = 0;
  const painter = new Painter({ paint: (text) => shown.push(text), done: () => { done += 1; }, still });
  const frame = (ms = 16) => {
    now += ms;
    const due = [...frames.values()];
    frames.clear();
    for (const act of due) act(now);
  };
  return { painter, shown, frame, frames, done: () => done, seen: () => shown.at(-1)?.length ?? 0 };
}

test("a text appears evenly, and all of it", (t) => {
  const { painter, frame, frames, seen, done } = painting(t);
  painter.aim("a".repeat(220), true);
  assert.equal(seen(), 0);
  frame(0);
  assert.equal(seen(), 17);
  frame();
  assert.equal(seen(), 17 + Math.ceil((203 * 16) / 220));
  for (let count = 0; count < 200; count += 1) frame();
  assert.equal(seen(), 220);
  assert.equal(painter.painted, 220);
  assert.equal(done(), 1);
  assert.equal(frames.size, 0);
});

test("it waits for more without asking for frames, and goes on when more comes", (t) => {
  const { painter, frame, frames, shown, done } = painting(t);
  painter.aim("ab", false);
  frame(1_000);
  frame(1_000);
  assert.equal(shown.at(-1), "a");
  assert.equal(frames.size, 0);
  assert.equal(done(), 0);
  painter.aim("abc", false);
  frame(1_000);
  assert.equal(shown.at(-1), "ab");
  painter.aim("abc", true);
  frame(1_000);
  assert.equal(shown.at(-1), "abc");
  assert.equal(done(), 1);
});

test("a text that grows appears evenly from frame to frame, without a jump where more of it comes", (t) => {
  const { painter, frame, frames, seen } = painting(t);
  painter.aim("a".repeat(220), false);
  frame(0);
  frame();
  const before = 17 + Math.ceil((203 * 16) / 220);
  assert.equal(seen(), before);
  assert.equal(frames.size, 1);
  painter.aim("a".repeat(300), false);
  frame();
  assert.equal(seen(), before + Math.ceil(((300 - before) * 16) / 220));
});

test("frames are asked for one at a time", (t) => {
  const { painter, frames } = painting(t);
  painter.aim("abc", false);
  painter.aim("abcd", false);
  assert.equal(frames.size, 1);
});

test("who wants no motion sees text as it comes", (t) => {
  const { painter, shown, frames, done } = painting(t, true);
  painter.aim("abc", false);
  assert.deepEqual(shown, ["ab"]);
  painter.aim("abc", true);
  assert.deepEqual(shown, ["ab", "abc"]);
  assert.equal(done(), 1);
  assert.equal(frames.size, 0);
});

test("frozen it says what is shown and shows no more, until the text is whole", (t) => {
  const { painter, frame, frames, shown } = painting(t);
  painter.aim("a".repeat(220), false);
  frame(0);
  assert.equal(painter.freeze(), 17);
  assert.equal(frames.size, 0);
  painter.aim("a".repeat(300), false);
  frame();
  assert.equal(shown.at(-1)?.length, 17);
  painter.aim("a".repeat(20), true);
  frame(1_000);
  assert.equal(shown.at(-1)?.length, 20);
});

test("frozen without motion it shows no more either", (t) => {
  const { painter, shown } = painting(t, true);
  painter.aim("abc", false);
  painter.freeze();
  painter.aim("abcdef", false);
  assert.deepEqual(shown, ["ab"]);
  painter.aim("ab", true);
  assert.deepEqual(shown, ["ab", "ab"]);
});

test("a text that is not the one begun is shown at once", (t) => {
  const { painter, frame, shown } = painting(t);
  painter.aim("Hello there", false);
  frame(1_000);
  painter.aim("Good morning to you", true);
  frame(0);
  assert.equal(shown.at(-1), "Good morning to you");
});

test("a text cut back to what is shown goes on from there", (t) => {
  const { painter, frame, shown, done } = painting(t);
  painter.aim("a".repeat(220), false);
  frame(0);
  painter.aim("a".repeat(10), true);
  frame(0);
  assert.equal(shown.at(-1)?.length, 10);
  assert.equal(done(), 1);
});
