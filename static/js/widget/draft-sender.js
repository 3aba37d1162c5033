// @ts-check
// When to tell the server what is being written: once the keys have rested, and nothing twice. No DOM, no network.

/** Longer than the server's shortest pause, whatever the network does to it; about what comes between a word and Enter. */
export const REST_MS = 300;
export const DRAFT_LIMIT = 500;

export class DraftSender {
  #send;
  #text = "";
  #told = "";
  #number = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {(text: string, number: number) => boolean} send  whether it was handed on */
  constructor(send) {
    this.#send = send;
  }

  /** The customer wrote on. What is too long is told as nothing. @param {string} text */
  written(text) {
    this.stop();
    const trimmed = text.trim();
    this.#text = trimmed.length > DRAFT_LIMIT ? "" : trimmed;
    if (this.#text !== this.#told) this.#timer = setTimeout(() => this.#tell(), REST_MS);
  }

  /** The message itself went: it says all. */
  sent() {
    this.stop();
    this.#told = "";
  }

  stop() {
    clearTimeout(this.#timer);
  }

  #tell() {
    if (!this.#send(this.#text, this.#number + 1)) return;
    this.#number += 1;
    this.#told = this.#text;
  }
}
