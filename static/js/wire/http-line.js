// @ts-check
// A line over plain HTTP with a WebSocket's face: what its two ways of listening share. No DOM.

import { EventReader } from "./event-reader.js";
import { letGo, mayHold } from "./one-held.js";
import { Posts } from "./posts.js";

/** @typedef {{line: string, number: number, wait_s?: number}} Asked */

const CLOSED = 3;
const LOST = 1006;

/** Where a WebSocket's address has its edges over HTTP. @param {string} url @param {"stream" | "poll" | "frames"} edge */
export function addressOf(url, edge) {
  return url.replace(/^ws(.*)\/ws\//, `http$1/api/v1/${edge}/`);
}

/** Subclasses listen: `listen` opens the line with its first frame and feeds what comes to `hear`. */
export class HttpLine {
  readyState = 0;
  binaryType = "";
  /** @type {((event: any) => void) | null} */
  onopen = null;
  /** @type {((event: {data: string}) => void) | null} */
  onmessage = null;
  /** @type {((event: {code: number}) => void) | null} */
  onclose = null;
  #url;
  #abort = new AbortController();
  #events = new EventReader();
  /** @type {Posts | null} */
  #posts = null;
  /** What is said before the line has an id. @type {string[]} */
  #early = [];
  #begun = false;
  #line = "";

  /** @param {string} url  of the WebSocket */
  constructor(url) {
    this.#url = url;
    queueMicrotask(() => {
      if (this.readyState === CLOSED) return;
      this.readyState = 1;
      this.onopen?.({});
    });
  }

  /** @param {string} frame */
  send(frame) {
    if (this.readyState !== 1) return;
    if (!this.#begun) {
      this.#begun = true;
      this.listen(frame).then(() => this.#end(LOST), () => this.#end(LOST));
    } else if (this.#posts) this.#posts.send(frame);
    else this.#early.push(frame);
  }

  /** Ends the line. As with a WebSocket that is given up, nobody needs to be told. */
  close() {
    this.onclose = null;
    this.#end(LOST);
  }

  /** Opens with this frame and listens until the end. Rejects where the network fails. @param {string} _hello @returns {Promise<void>} */
  async listen(_hello) {
    throw new Error("a subclass listens");
  }

  /** The id that the server gave the line, "" before. */
  get line() {
    return this.#line;
  }

  get isOver() {
    return this.readyState === CLOSED;
  }

  /** Whether it may keep a connection waiting, as one page of this browser may. */
  async mayHold() {
    const may = await mayHold(this);
    if (this.isOver) letGo(this);
    return may;
  }

  /** The network does not carry it. */
  giveUp() {
    this.#end(LOST);
  }

  /**
   * @param {"stream" | "poll" | "frames"} edge
   * @param {string} body
   * @param {Asked} [asked]  of which line, and which in a row; none opens a line
   */
  async post(edge, body, asked) {
    /** @type {Record<string, string>} */
    const headers = { "Content-Type": "application/json" };
    if (asked) {
      headers["Chatsvc-Line"] = asked.line;
      headers["Chatsvc-Number"] = String(asked.number);
    }
    if (asked?.wait_s !== undefined) headers["Chatsvc-Wait"] = String(asked.wait_s);
    return fetch(addressOf(this.#url, edge), { method: "POST", headers, body, cache: "no-store", signal: this.#abort.signal });
  }

  /** What came, in any pieces. @param {string} text */
  hear(text) {
    for (const { name, data } of this.#events.read(text)) {
      if (this.readyState === CLOSED) return;
      if (name === "opened") this.#opened(JSON.parse(data).line);
      else if (name === "closed") this.#end(JSON.parse(data).code);
      else if (name === "") this.onmessage?.({ data });
    }
  }

  /** @param {string} line */
  #opened(line) {
    this.#line = line;
    this.#posts = new Posts((body, number) => this.post("frames", body, { line, number }), () => this.#end(LOST));
    for (const frame of this.#early.splice(0)) this.#posts.send(frame);
  }

  /** @param {number} code */
  #end(code) {
    if (this.readyState === CLOSED) return;
    this.readyState = CLOSED;
    this.#posts?.stop();
    this.#abort.abort();
    letGo(this);
    this.onclose?.({ code });
  }
}
