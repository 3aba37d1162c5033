// @ts-check
// Client frames on their way in POSTs: one at a time, in order, each repeated until it has arrived. Network only.

const TRIES = 4;
const AGAIN_MS = 400;
const WAITING_FRAMES = 200;

export class Posts {
  /** @type {string[]} */
  #frames = [];
  #number = 0;
  #sending = false;
  #stopped = false;
  #post;
  #failed;

  /**
   * @param {(body: string, number: number) => Promise<Response>} post  the same number again is carried out once
   * @param {() => void} failed  frames could not be delivered; which, the answers that do not come will show
   */
  constructor(post, failed) {
    this.#post = post;
    this.#failed = failed;
  }

  /** @param {string} frame */
  send(frame) {
    if (this.#frames.length >= WAITING_FRAMES) return this.#failed();
    this.#frames.push(frame);
    if (!this.#sending) void this.#sendAll();
  }

  stop() {
    this.#stopped = true;
    this.#frames = [];
  }

  async #sendAll() {
    this.#sending = true;
    while (this.#frames.length > 0) {
      this.#number += 1;
      const body = this.#frames.splice(0).join("\n");
      if (!(await this.#deliver(body)) && !this.#stopped) this.#failed();
    }
    this.#sending = false;
  }

  /** @param {string} body */
  async #deliver(body) {
    for (let tried = 0; tried < TRIES && !this.#stopped; tried += 1) {
      if (tried > 0) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS * tried));
      try {
        const { ok, status } = await this.#post(body, this.#number);
        if (ok) return true;
        if (status < 500) return false;
      } catch {
        // Tried again: whether it arrived is not known, and the number says that it is the same.
      }
    }
    return false;
  }
}
