// @ts-check
// Listens to one response that does not end.

import { HttpLine } from "./http-line.js";

/** A proxy that keeps the response back has not let the first event through by then. */
const FIRST_EVENT_MS = 5_000;

export class FetchStream extends HttpLine {
  /** @param {string} hello */
  async listen(hello) {
    if (!(await this.mayHold())) return;
    const timer = setTimeout(() => this.giveUp(), FIRST_EVENT_MS);
    try {
      const { ok, body } = await this.post("stream", hello);
      if (!ok || body === null) return;
      const decoder = new TextDecoder();
      const reader = body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        this.hear(decoder.decode(value, { stream: true }));
        if (this.line !== "") clearTimeout(timer);
      }
    } finally {
      clearTimeout(timer);
    }
  }
}
