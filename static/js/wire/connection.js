// @ts-check
// One line that comes back: hello first, heartbeat, back-off, close codes obeyed. Network only, no DOM.
// A WebSocket carries it; where none does, what fallback.js brings.

import { SUBPROTOCOLS, YOUNG_MS, decode as decodeShared, orderly } from "./frames.js";

/** @typedef {import("./frames.js").ServerFrame} ServerFrame */
/** @typedef {{type: string} & Record<string, unknown>} ClientFrame */
/** @typedef {"connecting" | "open" | "reconnecting" | "closed"} ConnectionState */
/** @typedef {{state: ConnectionState, code: number | null, retry_ms: number | null}} StateDetail */
/**
 * What to do after a close. `fresh` asks hello() for a new token; `wake` reconnects on the next use.
 * @typedef {{retry_ms: number | null, fresh?: boolean, wake?: boolean}} AfterClose
 */

export const CLOSE = {
  /** Not the server's: fallback.js has found a better way. */
  better: 4000,
  restarting: 1012,
  protocol: 4400,
  login_again: 4401,
  never_retry: 4403,
  unknown_subprotocol: 4406,
  asleep: 4408,
  replaced: 4409,
  slow_down: 4429,
};

const FIRST_DELAY_MS = 500;
const GROWTH = 1.5;
const LONGEST_DELAY_MS = 30_000;
const RESTART_SPREAD_MS = 5_000;
const SLOW_DOWN_MS = 10_000;
/** The server says by then what became of a frame, also where its database hangs. */
const ANSWER_MS = 15_000;
/** Somebody is looking: a line that is there answers a ping sooner. */
const PROBE_MS = 5_000;
/**
 * After so many failures WebSockets are taken for blocked. One that opens and stays silent counts for all, and two that
 * are welcomed and die young.
 */
const FAILURES = 3;
const ANSWERS = new Set(["ack", "refused", "pong"]);
/**
 * When a page may have come back from sleep, from another network or from the browser's memory; `freeze`: it goes there;
 * `offline`: the network may be gone.
 */
const WAKES = ["online", "offline", "pageshow", "visibilitychange", "resume", "freeze"];
/** Some of them do not leave the document. */
const CAPTURE = { capture: true };
/** Under this name fallback.js keeps the way that worked here last, where it was not a WebSocket. */
const WAY = "chatsvc-way";
const CANNOT_RETRY = new Set([CLOSE.never_retry, CLOSE.unknown_subprotocol, CLOSE.replaced, CLOSE.protocol]);

/**
 * Back-off with full jitter, and the meaning of each close code. Pure.
 * @param {number} code
 * @param {number} attempt  failed attempts since a line last proved good, from 0
 * @param {number} chance  0 ≤ chance < 1
 * @param {boolean} refreshed  whether the token was renewed since the last welcome
 * @returns {AfterClose}
 */
export function afterClose(code, attempt, chance, refreshed) {
  const ceiling = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * GROWTH ** attempt);
  if (CANNOT_RETRY.has(code)) return { retry_ms: null };
  if (code === CLOSE.login_again) return refreshed ? { retry_ms: null } : { retry_ms: 0, fresh: true };
  if (code === CLOSE.better) return { retry_ms: 0 };
  if (code === CLOSE.asleep) return { retry_ms: null, wake: true };
  if (code === CLOSE.slow_down) return { retry_ms: SLOW_DOWN_MS + chance * Math.max(SLOW_DOWN_MS, ceiling) };
  if (code === CLOSE.restarting) return { retry_ms: chance * Math.max(RESTART_SPREAD_MS, ceiling) };
  return { retry_ms: chance * ceiling };
}

/** Whether nobody can see the page; not said where somebody can. */
const hidden = () => globalThis.document?.hidden || undefined;

/**
 * Events: `frame` (detail: the frame) and `state` (detail: StateDetail). `open` is told when the server has
 * answered hello, before that first frame is dispatched.
 */
export class Connection extends EventTarget {
  /** Whether somebody looks at another page that is told by this line. @type {() => boolean} */
  seenElsewhere = () => false;
  #url;
  #hello;
  #decode;
  #socketClass;
  #random;
  /** The attempt or connection of now; older ones are ignored. @type {{socket: WebSocket | null} | null} */
  #line = null;
  /** @type {ConnectionState} */
  #state = "closed";
  #wanted = false;
  #asleep = false;
  #fresh = false;
  #refreshed = false;
  #attempt = 0;
  /** What speaks against the way of now, since a line last proved good. */
  #failures = 0;
  #openedAt = 0;
  /** Whether nothing got through when another way was looked for last. */
  #cutOff = false;
  /** What is waited for: the next attempt, a welcome, or an answer. @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #pulse;
  #wake = (/** @type {Event} */ event) => this.#woken(event);

  /**
   * @param {object} options
   * @param {string} options.url
   * @param {(fresh: boolean) => ClientFrame | Promise<ClientFrame>} options.hello  the first frame of each
   *   connection, with the fields to resume from; `fresh` asks for a new token. A rejection counts as a failed attempt,
   *   after which its `wait_ms` pass besides.
   * @param {import("./frames.js").Decode} [options.decode]
   * @param {typeof WebSocket} [options.socketClass]
   * @param {() => number} [options.random]
   */
  constructor({ url, hello, decode = decodeShared, socketClass = globalThis.WebSocket, random = Math.random }) {
    super();
    this.#url = url;
    this.#hello = hello;
    this.#decode = decode;
    this.#socketClass = socketClass;
    this.#random = random;
  }

  /** @returns {ConnectionState} */
  get state() {
    return this.#state;
  }

  /** Connects and stays connected until close(), or until the server forbids it. */
  open() {
    if (this.#wanted && !this.#asleep) return;
    this.#wanted = true;
    this.#asleep = false;
    for (const name of WAKES) globalThis.addEventListener?.(name, this.#wake, CAPTURE);
    void this.#connect("connecting");
  }

  /** Ends the connection; nothing is retried. */
  close() {
    this.#stop(null);
  }

  /** Ends the connection and opens another at once, with a new hello. */
  restart() {
    this.close();
    this.open();
  }

  /**
   * Sends now, or not at all: what must arrive is kept by the caller and sent again after `open`. What has an id is
   * answered in time, or the line is lost.
   * @param {ClientFrame} frame
   * @returns {boolean} whether it was handed to an open socket
   */
  send(frame) {
    if (this.#asleep) this.open();
    const socket = this.#line?.socket;
    if (this.#state !== "open" || socket?.readyState !== 1) return false;
    socket.send(JSON.stringify(frame));
    if ("id" in frame || frame.type === "ping") this.#timer ??= this.#deadline(ANSWER_MS);
    return true;
  }

  /**
   * The hello is made before the socket is opened: the server waits five seconds for it, a slow network may not.
   * @param {ConnectionState} state
   */
  async #connect(state) {
    this.#clear();
    this.#tell(state, null, null);
    /** @type {{socket: WebSocket | null}} */
    const line = { socket: null };
    this.#line = line;
    this.#timer = this.#deadline(ANSWER_MS, FAILURES);
    try {
      if (this.#failures >= FAILURES || hasOtherWay()) this.#socketClass = await this.#way();
      const hello = await this.#hello(this.#fresh);
      if (line !== this.#line) return;
      this.#fresh = false;
      line.socket = this.#dial(line, hello);
    } catch (error) {
      // The caller could not make a hello (its own request failed): the same as a lost connection.
      this.#lost(line, 1006, /** @type {{wait_ms?: number}} */ (error).wait_ms);
    }
  }

  /**
   * Some browsers never ask again for a module that did not load: without a network that must not end the attempts.
   * Whatever is back after nothing got through, sockets may be back as well.
   */
  async #way() {
    const found = await import("./fallback.js").catch(() => null);
    const wasCutOff = this.#cutOff;
    this.#cutOff = found === null;
    return found === null || wasCutOff ? this.#socketClass : found.fallback(this.#url, this.#socketClass, WAY);
  }

  /** @param {{socket: WebSocket | null}} line @param {ClientFrame} hello */
  #dial(line, hello) {
    const socket = new this.#socketClass(this.#url, SUBPROTOCOLS);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => socket.send(JSON.stringify(hello));
    socket.onmessage = (event) => this.#receive(line, event.data);
    socket.onclose = (event) => this.#lost(line, event.code);
    return socket;
  }

  /** @param {{socket: WebSocket | null}} line @param {string | ArrayBuffer} data */
  #receive(line, data) {
    if (line !== this.#line) return;
    const frame = this.#decode(data);
    if (frame === null) return;
    if (this.#state === "open" && ANSWERS.has(frame.type)) this.#answered(frame.type);
    if (this.#state !== "open" && frame.type !== "refused") this.#welcomed();
    if (line !== this.#line) return;
    const { heartbeat_s } = /** @type {{heartbeat_s?: number | null}} */ (frame);
    if (heartbeat_s) this.#beat(heartbeat_s);
    if (frame.type !== "pong") this.dispatchEvent(new CustomEvent("frame", { detail: frame }));
  }

  #welcomed() {
    this.#expectNothing();
    this.#refreshed = false;
    this.#openedAt = Date.now();
    this.#beat();
    this.#tell("open", null, null);
  }

  /** @param {number} [heartbeat_s]  as the server last said */
  #beat(heartbeat_s = 30) {
    clearInterval(this.#pulse);
    this.#pulse = setInterval(() => this.#ping(), heartbeat_s * 1000);
  }

  /** The line of a hidden page may sleep. */
  #ping() {
    return this.send({ type: "ping", hidden: hidden() && (!this.seenElsewhere() || undefined) });
  }

  /** Both directions work. Only a ping that came back proves a line good: one that dies young is not tried ever faster. @param {string} type */
  #answered(type) {
    this.#expectNothing();
    if (type === "pong") this.#attempt = this.#failures = 0;
  }

  /** @param {number} delay_ms @param {number} [failures]  that its passing counts for besides its own */
  #deadline(delay_ms, failures = 0) {
    const line = this.#line;
    return setTimeout(() => {
      if (line !== null) this.#lost(line, 1006);
      this.#failures += failures;
    }, delay_ms);
  }

  #expectNothing() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** @param {{socket: WebSocket | null}} line @param {number} code @param {number} [wait_ms]  before the back-off */
  #lost(line, code, wait_ms = 0) {
    if (line !== this.#line) return;
    const next = afterClose(code, this.#attempt, this.#random(), this.#refreshed);
    this.#attempt += 1;
    if (!orderly(code)) this.#failures += this.#diedYoung ? FAILURES / 2 : 1;
    this.#clear();
    if (next.retry_ms === null) {
      if (!next.wake) return this.#stop(code);
      this.#asleep = true;
      return this.#tell("closed", code, null);
    }
    if (next.fresh) this.#fresh = this.#refreshed = true;
    const retry_ms = next.retry_ms + Math.min(wait_ms, LONGEST_DELAY_MS);
    this.#tell("reconnecting", code, retry_ms);
    this.#timer = setTimeout(() => void this.#connect("reconnecting"), retry_ms);
  }

  get #diedYoung() {
    return this.#state === "open" && Date.now() - this.#openedAt < YOUNG_MS;
  }

  /** Somebody looks at the page again, or it has a network again: nothing waits for its time. */
  wake() {
    if (this.#asleep) this.open();
    else if (this.#wanted && this.#line === null) void this.#connect("reconnecting");
    else this.#doubt();
  }

  /** @param {Event} event */
  #woken({ type }) {
    if (type === "freeze") return this.#frozen();
    // A browser may call itself offline and reach the server all the same: the line itself shows it.
    if (type === "offline") return this.#doubt();
    if (!hidden() || (!this.#asleep && (type === "online" || type === "resume"))) this.wake();
  }

  /** A page that may not run answers nothing: its line ends, and goes on when it thaws. */
  #frozen() {
    if (this.#asleep) return;
    this.#clear();
    this.#tell("reconnecting", null, null);
  }

  #doubt() {
    if (this.#line !== null && this.#state === "open") this.#probe(this.#line);
  }

  /** A socket that slept with its machine still says that it is open: only an answer shows it. @param {{socket: WebSocket | null}} line */
  #probe(line) {
    if (!this.#ping()) return this.#lost(line, 1006);
    clearTimeout(this.#timer);
    this.#timer = this.#deadline(PROBE_MS);
  }

  /** @param {number | null} code */
  #stop(code) {
    this.#wanted = false;
    this.#asleep = false;
    this.#attempt = this.#failures = 0;
    for (const name of WAKES) globalThis.removeEventListener?.(name, this.#wake, CAPTURE);
    this.#clear();
    this.#tell("closed", code, null);
  }

  #clear() {
    this.#expectNothing();
    clearInterval(this.#pulse);
    this.#line?.socket?.close();
    this.#line = null;
  }

  /** @param {ConnectionState} state @param {number | null} code @param {number | null} retry_ms */
  #tell(state, code, retry_ms) {
    this.#state = state;
    this.dispatchEvent(new CustomEvent("state", { detail: { state, code, retry_ms } }));
  }
}

function hasOtherWay() {
  try {
    return localStorage.getItem(WAY) !== null;
  } catch {
    return false; // storage is denied: found out anew on each page
  }
}
