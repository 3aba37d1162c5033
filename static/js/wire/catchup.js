// @ts-check
// Asks for what a timeline misses: a little after the hole appeared, and again while it stays. Network only.

import { gap } from "./timeline.js";

/** @typedef {import("./timeline.js").Timeline} Timeline */

const FIRST_ASK_MS = 100;
const NEXT_ASK_MS = 1_500;

/** One per timeline shown. Call note() after every reduce, stop() when it is no longer shown. */
export class CatchUp {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** @type {() => Timeline} */
  #current;
  #send;

  /**
   * @param {() => Timeline} current  the timeline as it is now
   * @param {(frame: {type: string} & Record<string, unknown>) => boolean} send
   */
  constructor(current, send) {
    this.#current = current;
    this.#send = send;
  }

  note() {
    if (gap(this.#current()) === null) this.stop();
    else if (this.#timer === undefined) this.#timer = setTimeout(() => this.#ask(), FIRST_ASK_MS);
  }

  stop() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #ask() {
    const missing = gap(this.#current());
    this.#timer = undefined;
    if (missing === null) return;
    this.#send({ type: "history.fetch", ...missing });
    this.#timer = setTimeout(() => this.#ask(), NEXT_ASK_MS);
  }
}
