// @ts-check
// The browser's socket as the modules under test open it, and the server's end of it in the test's hands.

/** @typedef {FakeSocket} Socket */

class FakeSocket {
  readyState = 0;
  binaryType = "";
  /** What was sent, parsed. @type {any[]} */
  sent = [];
  /** @type {((event: any) => void) | null} */
  onopen = null;
  /** @type {((event: any) => void) | null} */
  onmessage = null;
  /** @type {((event: any) => void) | null} */
  onclose = null;

  /** @param {string} url @param {string[]} protocols */
  constructor(url, protocols) {
    this.url = url;
    this.protocols = protocols;
  }

  /** @param {string} text */
  send(text) {
    if (this.readyState !== 1) throw new Error("sent before the socket was open");
    this.sent.push(JSON.parse(text));
  }

  close() {
    this.readyState = 3;
  }

  accept() {
    this.readyState = 1;
    this.onopen?.({});
  }

  /** @param {object} frame */
  says(frame) {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }

  /** @param {number} code */
  ends(code) {
    this.readyState = 3;
    this.onclose?.({ code });
  }

  /** @param {string} type */
  last(type) {
    return this.sent.filter((frame) => frame.type === type).at(-1);
  }
}

/** A network of one server: a class to dial with, and the sockets that were dialled. */
export function network() {
  /** @type {FakeSocket[]} */
  const sockets = [];
  const socketClass = /** @type {typeof WebSocket} */ (/** @type {unknown} */ (class extends FakeSocket {
    /** @param {string} url @param {string[]} protocols */
    constructor(url, protocols) {
      super(url, protocols);
      sockets.push(this);
    }
  }));
  return { sockets, socketClass, get last() { return sockets[sockets.length - 1]; } };
}

/** Lets everything that is only waiting for its turn run. Timers are the test's. */
export const turns = () => new Promise((resolve) => setImmediate(resolve));

/** @param {object} [more] */
export const welcome = (more = {}) => ({
  type: "welcome", conversation: "c", customer: "k", name: "", verified: false, status: "open",
  owner: { kind: "assistant", name: "Lumi" }, page: { conversation: "c", epoch: "e", upto: 0, events: [] }, assistant: true,
  availability: { online: true }, heartbeat_s: 30, now: 0, ...more,
});
