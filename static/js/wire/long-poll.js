// @ts-check
// Listens by asking again and again: each response ends with what there was to tell.

import { HttpLine } from "./http-line.js";

const TRIES = 3;
const AGAIN_MS = 500;
const SHORT_PAUSE_MS = 2_000;
const HIDDEN_PAUSE_MS = 10_000;
/** The server answers within 25 s. */
const ANSWER_MS = 40_000;

export class LongPoll extends HttpLine {
  /** @param {string} hello */
  async listen(hello) {
    this.hear(await this.#ask(() => this.post("poll", hello)));
    for (let number = 2; !this.isOver; number += 1) {
      const waits = await this.mayHold();
      if (!waits) await pause(globalThis.document?.hidden ? HIDDEN_PAUSE_MS : SHORT_PAUSE_MS);
      const asked = { line: this.line, number, ...(waits ? {} : { wait_s: 0 }) };
      this.hear(await this.#again(() => this.post("poll", "", asked)));
    }
  }

  /** The same number gives the same answer, so a lost one is asked for again. @param {() => Promise<Response>} post */
  async #again(post) {
    for (let tried = 1; ; tried += 1) {
      try {
        return await this.#ask(post);
      } catch (error) {
        if (tried === TRIES || this.isOver) throw error;
      }
      await pause(AGAIN_MS);
    }
  }

  /** @param {() => Promise<Response>} post */
  async #ask(post) {
    const timer = setTimeout(() => this.giveUp(), ANSWER_MS);
    try {
      const response = await post();
      if (response.status === 404) this.giveUp();
      if (!response.ok) throw new Error(`a poll was answered with ${response.status}`);
      return await response.text();
    } finally {
      clearTimeout(timer);
    }
  }
}

/** @param {number} ms */
function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
