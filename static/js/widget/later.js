// @ts-check
// The parts that nobody sees at first. They come behind the line.

import "./earlier.js";
import "./waiting.js";

/** @typedef {{earlier: import("./earlier.js").ChatEarlier, waiting: import("./waiting.js").ChatWaiting}} Later */

/** @param {import("./words.js").Words} words @returns {Later} */
export function later(words) {
  const earlier = /** @type {Later["earlier"]} */ (document.createElement("chat-earlier"));
  const waiting = /** @type {Later["waiting"]} */ (document.createElement("chat-waiting"));
  earlier.words = waiting.words = words;
  return { earlier, waiting };
}
