// @ts-check
// Which way a line takes where WebSockets fail, and when it goes back. Loaded only when it is needed.

import { FetchStream } from "./fetch-stream.js";
import { addressOf } from "./http-line.js";
import { LongPoll } from "./long-poll.js";
import { letGo } from "./one-held.js";

/** Closes that say nothing against the way a line took: the server's own, and those of the protocol. */
const orderly = (/** @type {number} */ code) => code === 1012 || code === 1013 || code >= 4000;
const CLOSED = 3;
/** "Reconnect and resume", soon. */
const GO_BETTER = 1000;
const YOUNG_MS = 10_000;
/** Whoever gives a silent line up sooner has other reasons. */
const SILENT_MS = 4_000;
const TRUSTED_FAILURES = 3;
const FIRST_PROBE_MS = 60_000;
const LONGEST_PROBE_MS = 30 * 60_000;
const PROBE_ANSWER_MS = 5_000;

/** For whom HTTP did not get through either, when it was tried last. @type {WeakSet<typeof WebSocket>} */
const cutOff = new WeakSet();

/**
 * A class to dial with in a WebSocket's place: what it makes has a WebSocket's face and takes the way that works.
 * `socketClass` itself where it is one already, and where HTTP does not get through either.
 * @param {string} url
 * @param {typeof WebSocket} socketClass
 * @param {{others?: any[], random?: () => number}} [options]
 * @returns {Promise<typeof WebSocket>}
 */
export async function fallback(url, socketClass, { others = [FetchStream, LongPoll], random = Math.random } = {}) {
  if (socketClass.prototype instanceof Way) return socketClass;
  const reached = await fetch(addressOf(url, "stream"), { method: "OPTIONS" }).then(() => true, () => false);
  if (!reached) cutOff.add(socketClass);
  // Whatever is back after nothing got through, sockets may be back as well.
  if (!reached || cutOff.delete(socketClass)) return socketClass;
  const ladder = new Ladder([socketClass, ...others], random);
  return /** @type {any} */ (class extends Way {
    /** @param {string} url @param {string[]} protocols */
    constructor(url, protocols) {
      super(ladder, url, protocols);
    }
  });
}

/** The ways from best to worst, and which is taken now. After the worst the first is tried again. */
class Ladder {
  at = 1;
  #ways;
  #random;
  #failures = 0;
  /** Whether the way of now has carried a line that lived. */
  #trusted = false;
  #probe_ms = FIRST_PROBE_MS;

  /** @param {(typeof WebSocket)[]} ways @param {() => number} random */
  constructor(ways, random) {
    this.#ways = ways;
    this.#random = random;
  }

  /** @param {string} url @param {string[]} protocols @param {number} [at] */
  dial(url, protocols, at = this.at) {
    return new this.#ways[at](url, protocols);
  }

  /** When to look for a better way than the one of now. */
  get probe_ms() {
    return this.#probe_ms * (0.75 + this.#random() / 2);
  }

  lived() {
    this.#trusted = true;
    this.#failures = 0;
    if (this.at === 0) this.#probe_ms = FIRST_PROBE_MS;
  }

  /** A line could not be opened, or died young. */
  failed() {
    this.#failures += 1;
    if (!this.#trusted || this.#failures >= TRUSTED_FAILURES) this.take((this.at + 1) % this.#ways.length);
  }

  /** The best way that answers now; the way of now where no better one does. @param {string} url @param {string[]} protocols */
  async best(url, protocols) {
    const from = this.at;
    this.#probe_ms = Math.min(LONGEST_PROBE_MS, this.#probe_ms * 2);
    for (let at = 0; at < from; at += 1) if (await answers(this.dial(url, protocols, at))) return at;
    return from;
  }

  /** @param {number} at */
  take(at) {
    this.at = at;
    this.#failures = 0;
    this.#trusted = false;
  }
}

/** One line: tells the ladder how it fared, and ends when there is a better way. */
class Way {
  /** @type {((event: any) => void) | null} */
  onopen = null;
  /** @type {((event: any) => void) | null} */
  onmessage = null;
  /** @type {((event: any) => void) | null} */
  onclose = null;
  #ladder;
  #url;
  #protocols;
  #socket;
  #dialledAt = Date.now();
  /** When it was first heard; 0 before. */
  #heardAt = 0;
  #over = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #probe = () => void this.#climb();

  /** @param {Ladder} ladder @param {string} url @param {string[]} protocols */
  constructor(ladder, url, protocols) {
    this.#ladder = ladder;
    this.#url = url;
    this.#protocols = protocols;
    const socket = this.#socket = ladder.dial(url, protocols);
    socket.onopen = (event) => this.onopen?.(event);
    socket.onmessage = (event) => this.#heard(event);
    socket.onclose = ({ code }) => {
      this.#judge(!orderly(code));
      this.#end(code);
    };
  }

  get readyState() {
    return this.#over ? CLOSED : this.#socket.readyState;
  }

  get binaryType() {
    return this.#socket.binaryType;
  }

  set binaryType(type) {
    this.#socket.binaryType = type;
  }

  /** @param {string} text */
  send(text) {
    this.#socket.send(text);
  }

  close() {
    this.onclose = null;
    this.#judge(this.#heardAt === 0 && Date.now() - this.#dialledAt >= SILENT_MS);
    this.#end(GO_BETTER);
  }

  /** @param {any} event */
  #heard(event) {
    if (this.#heardAt === 0) {
      this.#heardAt = Date.now();
      this.#look();
    }
    this.onmessage?.(event);
  }

  #look() {
    if (this.#ladder.at === 0) return letGo();
    globalThis.addEventListener?.("online", this.#probe);
    this.#timer = setTimeout(this.#probe, this.#ladder.probe_ms);
  }

  #lookAway() {
    clearTimeout(this.#timer);
    globalThis.removeEventListener?.("online", this.#probe);
  }

  async #climb() {
    this.#lookAway();
    const best = await this.#ladder.best(this.#url, this.#protocols);
    if (this.#over) return;
    if (best === this.#ladder.at) return this.#look();
    this.#ladder.take(best);
    this.#end(GO_BETTER);
  }

  /** @param {boolean} failed  where it did not live long, its way is to blame */
  #judge(failed) {
    if (this.#over) return;
    if (this.#heardAt !== 0 && Date.now() - this.#heardAt >= YOUNG_MS) this.#ladder.lived();
    else if (failed) this.#ladder.failed();
  }

  /** @param {number} code */
  #end(code) {
    if (this.#over) return;
    this.#over = true;
    this.#lookAway();
    this.#socket.onclose = null;
    this.#socket.close();
    this.onclose?.({ code });
  }
}

/**
 * Whether frames pass both ways. A ping before hello is refused, which is an answer.
 * @param {WebSocket} socket
 * @returns {Promise<boolean>}
 */
function answers(socket) {
  return new Promise((resolve) => {
    const end = (/** @type {boolean} */ answered) => {
      clearTimeout(timer);
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
      resolve(answered);
    };
    const timer = setTimeout(() => end(false), PROBE_ANSWER_MS);
    socket.onopen = () => socket.send('{"type":"ping"}');
    socket.onmessage = () => end(true);
    socket.onclose = () => end(false);
  });
}
