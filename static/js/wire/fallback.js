// @ts-check
// Which way a line takes where WebSockets fail, and when it goes back. Loaded only when it is needed.

import { FetchStream } from "./fetch-stream.js";
import { YOUNG_MS, orderly } from "./frames.js";
import { addressOf } from "./http-line.js";
import { LongPoll } from "./long-poll.js";

const CLOSED = 3;
/** "Reconnect and resume", at once: CLOSE.better of connection.js. */
const GO_BETTER = 4000;
/** Whoever gives a silent line up sooner has other reasons. */
const SILENT_MS = 4_000;
const TRUSTED_FAILURES = 3;
/** What failed three times because the server was just starting works soon. */
const FIRST_PROBE_MS = 5_000;
const NEXT_PROBE_MS = 60_000;
const LONGEST_PROBE_MS = 30 * 60_000;
const PROBE_ANSWER_MS = 5_000;

/** For whom HTTP did not get through either, when it was tried last. @type {WeakSet<typeof WebSocket>} */
const cutOff = new WeakSet();

/**
 * A class to dial with in a WebSocket's place: what it makes has a WebSocket's face and takes the way that works.
 * `socketClass` itself where it is one already, and where HTTP does not get through either.
 * @param {string} url
 * @param {typeof WebSocket} socketClass
 * @param {string} name  under which the way is kept in this browser's storage
 * @param {{others?: any[], random?: () => number}} [options]
 * @returns {Promise<typeof WebSocket>}
 */
export async function fallback(url, socketClass, name, { others = [FetchStream, LongPoll], random = Math.random } = {}) {
  if (socketClass.prototype instanceof Way) return socketClass;
  const reached = await fetch(addressOf(url, "stream"), { method: "OPTIONS" }).then(() => true, () => false);
  if (!reached) cutOff.add(socketClass);
  // Whatever is back after nothing got through, sockets may be back as well.
  if (!reached || cutOff.delete(socketClass)) return socketClass;
  const ladder = new Ladder(name, [socketClass, ...others], random);
  return /** @type {any} */ (class extends Way {
    /** @param {string} url @param {string[]} protocols */
    constructor(url, protocols) {
      super(ladder, url, protocols);
    }
  });
}

/**
 * The ways from best to worst, and which is taken now. After the worst the first is tried again. Kept for the pages
 * that follow in this browser once a look for a better one was in vain, until a socket carries a line again.
 */
class Ladder {
  at = 1;
  #name;
  #ways;
  #random;
  #failures = 0;
  /** Whether the way of now has carried a line that lived. */
  #trusted = false;
  /** From one look for a better way to the next. */
  #pause_ms = FIRST_PROBE_MS;
  /** When to look next, by the wall clock; 0 until a line was heard. */
  #probeAt = 0;
  /** The look of now, which outlives the line that began it. @type {Promise<number> | null} */
  #looking = null;
  /** Whether the network has come back since a look began. */
  #back = false;

  /** @param {string} name  under which it is kept @param {(typeof WebSocket)[]} ways @param {() => number} random */
  constructor(name, ways, random) {
    this.#name = name;
    this.#ways = ways;
    this.#random = random;
    // Also while no line is there that could look at once.
    globalThis.addEventListener?.("online", () => this.#back = true);
    const kept = recall(name);
    if (kept === null || !(kept.at < ways.length)) return;
    this.at = kept.at;
    this.#pause_ms = kept.pause_ms;
    this.#probeAt = kept.probeAt;
  }

  /** @param {string} url @param {string[]} protocols @param {number} [at] */
  dial(url, protocols, at = this.at) {
    return new this.#ways[at](url, protocols);
  }

  /** How long until the next look for a better way than the one of now, which has just been heard. */
  heard() {
    this.#probeAt ||= Date.now() + this.#pause_ms * (0.75 + this.#random() / 2);
    this.#keep();
    return this.#looking === null && !this.#back ? Math.max(0, this.#probeAt - Date.now()) : 0;
  }

  lived() {
    this.#trusted = true;
    this.#failures = 0;
    if (this.at === 0) this.#pause_ms = FIRST_PROBE_MS;
  }

  /** A line could not be opened, or died young. */
  failed() {
    this.#failures += 1;
    if (!this.#trusted || this.#failures >= TRUSTED_FAILURES) this.take((this.at + 1) % this.#ways.length);
  }

  /**
   * The best way that answers now; the way of now where no better one does.
   * @param {string} url @param {string[]} protocols
   * @returns {Promise<number>}
   */
  best(url, protocols) {
    return this.#looking ??= this.#best(url, protocols).finally(() => this.#looking = null);
  }

  /** @param {string} url @param {string[]} protocols */
  async #best(url, protocols) {
    const from = this.at;
    this.#pause_ms = Math.max(NEXT_PROBE_MS, Math.min(LONGEST_PROBE_MS, this.#pause_ms * 2));
    this.#probeAt = 0;
    let found = from;
    do {
      this.#back = false;
      for (let at = 0; at < from && found === from; at += 1) if (await answers(this.dial(url, protocols, at))) found = at;
      // What was tried may have begun before the network came back.
    } while (this.#back && found === from);
    // The way of the beginning may have failed meanwhile.
    return found < from ? found : this.at;
  }

  /** @param {number} at */
  take(at) {
    this.at = at;
    this.#failures = 0;
    this.#trusted = false;
    this.#probeAt = 0;
    this.#keep();
  }

  #keep() {
    const { at } = this;
    remember(this.#name, at === 0 || this.#pause_ms === FIRST_PROBE_MS ? null : { at, pause_ms: this.#pause_ms, probeAt: this.#probeAt });
  }
}

/** @typedef {{at: number, pause_ms: number, probeAt: number}} Kept */

/** @param {string} name @param {Kept | null} kept */
function remember(name, kept) {
  try {
    if (kept === null) localStorage.removeItem(name);
    else localStorage.setItem(name, JSON.stringify(kept));
  } catch {
    // Denied or full: the next page finds out by itself.
  }
}

/** @param {string} name @returns {Kept | null} */
function recall(name) {
  try {
    const { at, pause_ms, probeAt } = JSON.parse(localStorage.getItem(name) ?? "");
    return at > 0 && pause_ms > 0 && probeAt >= 0 ? { at, pause_ms, probeAt } : null;
  } catch {
    return null;
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
  #at;
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
    this.#at = ladder.at;
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
    if (this.#ladder.at < this.#at) return this.#end(GO_BETTER);
    if (this.#at === 0) return;
    globalThis.addEventListener?.("online", this.#probe);
    this.#timer = setTimeout(this.#probe, this.#ladder.heard());
  }

  #lookAway() {
    clearTimeout(this.#timer);
    globalThis.removeEventListener?.("online", this.#probe);
  }

  async #climb() {
    clearTimeout(this.#timer);
    const best = await this.#ladder.best(this.#url, this.#protocols);
    this.#lookAway();
    if (best < this.#ladder.at) this.#ladder.take(best);
    if (!this.#over) this.#look();
  }

  /** @param {boolean} failed  where it did not live long, its way is to blame */
  #judge(failed) {
    if (this.#over || this.#at !== this.#ladder.at) return;
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
    // A Blob may be read only after the close that follows it.
    socket.binaryType = "arraybuffer";
    socket.onopen = () => socket.send('{"type":"ping"}');
    socket.onmessage = () => end(true);
    socket.onclose = () => end(false);
  });
}
