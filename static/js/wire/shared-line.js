// @ts-check
// One line for all pages of this browser that speak for the same person. The page that holds the lock of their name has
// it; the others hear and speak through that page over a BroadcastChannel, and one of them takes over when it ends,
// freezes or falls silent. Loaded behind the first paint. Network only, no DOM.

import { Hub } from "./hub.js";
import { hold } from "./locks.js";

/** @typedef {import("./frames.js").ServerFrame} ServerFrame */
/** @typedef {import("./connection.js").ClientFrame} ClientFrame */
/** @typedef {import("./connection.js").StateDetail} StateDetail */
/** @typedef {import("./hub.js").Held} Held */
/**
 * To the page that has the line. A page that is there says, with each pulse, whether anybody can see it.
 * @typedef {{from: string} & ({joins: Held | null, seen: boolean} | {asks: true, seen: boolean} | {wakes: true} | {says: ClientFrame})} Up
 */
/**
 * From it, to one page or, with null, to all; with neither state nor frame a sign of life. `reign` grows with
 * every page that takes over: what comes from another is no continuation.
 * @typedef {{reign: number, to: string | null, state?: StateDetail, frame?: ServerFrame}} Down
 */

const ASLEEP = 4408;
const PULSE_MS = 1_500;
/** A page that runs answers within milliseconds, however hidden it is; not to so many pulses in a row, and it is frozen. */
const UNANSWERED = 2;
/** Nobody sees a page any more that has not said so for this long: its next pulse has come by then. */
const SEEN_MS = 5_000;
/** Pulses that a page waits to be shown how things stand, before it asks for that again. */
const PATIENCE = 5;
const LIFE = ["freeze", "resume", "online", "pageshow", "visibilitychange"];
const CAPTURE = { capture: true };

/** A Connection's face: the same events, the same promises. */
export class SharedLine extends EventTarget {
  #line;
  #group;
  #held;
  #page;
  #me = crypto.randomUUID();
  #hub = new Hub(this.#me);
  #wanted = false;
  /** What its own line does concerns a page unless it is `gone` or `follows`. @type {"gone" | "joins" | "alone" | "leads" | "follows"} */
  #role = "gone";
  /** @type {StateDetail} */
  #told = { state: "closed", code: null, retry_ms: null };
  /** Ends with our membership. */
  #stay = new AbortController();
  /** Ends with the wait for the lock. */
  #queue = new AbortController();
  /** @type {BroadcastChannel | null} */
  #channel = null;
  /** @type {(() => void) | null} */
  #release = null;
  /** Ours where we have the line, else the one we hear; 0 before. */
  #reign = 0;
  /** A follower that was shown how things stand: what came before is of no use to it. */
  #shown = false;
  #pulses = 0;
  #unanswered = 0;
  /** When a page that follows was last seen by somebody. */
  #seenAt = -Infinity;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #pulse;
  #lived = (/** @type {Event} */ event) => this.#lives(event);

  /**
   * @param {object} options
   * @param {import("./connection.js").Connection} options.line  opened where this page has the line
   * @param {() => string} options.group  whose line: the same in all pages that may share it; "" where that is not known yet
   * @param {() => Held | null} options.held  what this page has of the conversation it shows
   * @param {EventTarget & {document?: {hidden: boolean}}} [options.page]
   */
  constructor({ line, group, held, page = globalThis }) {
    super();
    this.#line = line;
    this.#group = group;
    this.#held = held;
    this.#page = page;
    line.seenElsewhere = () => Date.now() - this.#seenAt < SEEN_MS;
    line.addEventListener("state", (event) => this.#lineIs(/** @type {CustomEvent<StateDetail>} */ (event).detail));
    line.addEventListener("frame", (event) => this.#lineSays(/** @type {CustomEvent<ServerFrame>} */ (event).detail));
  }

  get state() {
    return this.#told.state;
  }

  open() {
    if (this.#role === "follows") return this.#post({ from: this.#me, wakes: true });
    if (this.#role === "alone" || this.#role === "leads") return this.#line.open();
    if (this.#wanted) return;
    this.#wanted = true;
    for (const name of LIFE) this.#page.addEventListener(name, this.#lived, CAPTURE);
    void this.#join();
  }

  close() {
    this.#end();
    this.#tell({ state: "closed", code: null, retry_ms: null });
  }

  restart() {
    this.close();
    this.open();
  }

  /** @param {ClientFrame} frame @returns {boolean} whether it was handed to an open line */
  send(frame) {
    if (this.#role !== "follows") return this.#line.send(this.#hub.says(this.#me, frame));
    if (this.state === "open") this.#post({ from: this.#me, says: frame });
    else if (this.#told.code === ASLEEP) this.#post({ from: this.#me, wakes: true });
    return this.state === "open";
  }

  async #join() {
    const { signal } = this.#stay = new AbortController();
    const name = this.#group();
    if (name === "") return this.#goAlone();
    this.#role = "joins";
    try {
      this.#channel = new BroadcastChannel(name);
      this.#channel.onmessage = ({ data }) => this.#hear(data);
      const release = await hold(name, { ifAvailable: true }, () => this.#stolen(name, signal));
      if (signal.aborted) release?.();
      else if (release === null) this.#follow(name);
      else this.#lead(release);
    } catch {
      // Denied with the storage: nobody to share with.
      if (!signal.aborted) this.#goAlone();
    }
  }

  #goAlone() {
    this.#role = "alone";
    this.#line.open();
  }

  /** @param {() => void} release */
  #lead(release) {
    clearInterval(this.#pulse);
    this.#queue.abort();
    this.#role = "leads";
    this.#release = release;
    this.#reign = Math.max(this.#reign + 1, Date.now());
    if (this.#line.state === "open") this.#tellPages(this.#told, null);
    else this.#line.open();
  }

  /** @param {string} name */
  #follow(name) {
    this.#role = "follows";
    this.#line.close();
    this.#begin(this.#reign);
    this.#unanswered = 0;
    this.#tell({ state: this.state === "closed" ? "connecting" : "reconnecting", code: null, retry_ms: null });
    const { signal } = this.#stay;
    const queue = this.#queue = new AbortController();
    const claim = (/** @type {import("./locks.js").Claim} */ how) => hold(name, how, () => this.#stolen(name, signal)).then((release) => {
      if (signal.aborted) release?.();
      else if (release !== null) this.#lead(release);
    });
    claim({ signal: queue.signal }).catch(() => {});
    this.#pulse = setInterval(() => {
      if (this.#unanswered < UNANSWERED) return this.#ask();
      clearInterval(this.#pulse);
      queue.abort();
      claim({ steal: true }).catch(() => signal.aborted || this.#goAlone());
    }, PULSE_MS * (1 + Math.random() / 2)); // of several, one notices first
    this.#ask();
  }

  /** Another page took us for frozen, and has the line now. @param {string} name @param {AbortSignal} signal */
  #stolen(name, signal) {
    if (signal.aborted) return;
    this.#release = null;
    this.#follow(name);
  }

  /** Another page may have the line. */
  #leave() {
    this.#role = "gone";
    this.#line.close();
    this.#stay.abort();
    this.#queue.abort();
    clearInterval(this.#pulse);
    this.#release?.();
    this.#release = null;
    this.#channel?.close();
    this.#channel = null;
    this.#reign = 0;
  }

  #end() {
    this.#wanted = false;
    for (const name of LIFE) this.#page.removeEventListener(name, this.#lived, CAPTURE);
    this.#leave();
  }

  /** @param {Event} event */
  #lives(event) {
    if (event.type === "freeze") {
      this.#leave();
      this.#tell({ state: "reconnecting", code: null, retry_ms: null });
    } else if (event.type === "resume") {
      if (this.#role === "gone") void this.#join();
    } else if (this.#role === "follows" && this.#isSeen) {
      // Out of the browser's memory, where no channel reaches a page, and not every browser says that it freezes one.
      if (/** @type {{persisted?: boolean}} */ (event).persisted) this.#begin(this.#reign);
      this.#post({ from: this.#me, wakes: true });
      this.#ask();
    }
  }

  /** @param {StateDetail} detail */
  #lineIs(detail) {
    if (this.#role === "gone" || this.#role === "follows") return;
    if (detail.state === "open") this.#hub.opened();
    this.#tell(detail);
    // What the server does not want of us it may want of another page: each has credentials of its own.
    if (detail.state === "closed" && detail.code !== ASLEEP) return this.#end();
    if (this.#role === "leads") this.#tellPages(detail, null);
    if (detail.state === "open") this.#called(this.#group());
  }

  /** Whose line it is may be known only now, or turn out to be another's. @param {string} name */
  #called(name) {
    if (this.#role === "leads" && this.#channel?.name !== name) this.restart();
    else if (this.#role === "alone" && this.#channel === null && name !== "") void this.#join();
  }

  /** @param {ServerFrame} frame */
  #lineSays(frame) {
    const { switches } = this.#hub;
    const to = this.#hub.reader(frame);
    if (to !== this.#me) this.#post({ reign: this.#reign, to, frame });
    // Pages that waited to be shown the other conversation are shown the one that stays.
    if (switches && !this.#hub.switches && frame.type === "refused") this.#tellPages(this.#told, null);
    if (to === null || to === this.#me) this.dispatchEvent(new CustomEvent("frame", { detail: frame }));
  }

  /** @param {StateDetail} state @param {string | null} to */
  #tellPages(state, to) {
    this.#post({ reign: this.#reign, to, state });
  }

  /** @param {Up} up */
  #serve(up) {
    const { from } = up;
    if ("seen" in up && up.seen) this.#seenAt = Date.now();
    if ("wakes" in up) return this.#line.wake();
    if ("says" in up) return void this.#line.send(this.#hub.says(from, up.says));
    // Who opens a page looks at it: the event that wakes a line came before there was one to wake.
    if (this.#told.code === ASLEEP && up.seen) this.#line.wake();
    if (this.#line.state !== "open") return this.#tellPages(this.#told, from);
    this.#post({ reign: this.#reign, to: from });
    const frame = "joins" in up ? this.#hub.joins(from, up.joins) : null;
    if (frame !== null) this.#line.send(frame);
  }

  /** Whether it is there that has the line, or first of all how things stand. */
  #ask() {
    this.#unanswered += 1;
    this.#pulses += 1;
    const pulse = { from: this.#me, seen: this.#isSeen };
    if (this.#shown || this.#pulses % PATIENCE !== 1) this.#post({ ...pulse, asks: true });
    else this.#post({ ...pulse, joins: this.#held() });
  }

  get #isSeen() {
    return this.#page.document?.hidden !== true;
  }

  /** @param {Up | Down} said */
  #hear(said) {
    if ("reign" in said) {
      if (this.#role === "follows") this.#learn(said);
    } else if (this.#role === "leads") this.#serve(said);
  }

  /** @param {Down} down */
  #learn({ reign, to, state, frame }) {
    // A page that was taken for frozen may speak once more.
    if (reign < this.#reign) return;
    this.#unanswered = 0;
    if (reign !== this.#reign) this.#begin(reign);
    if (to !== null && to !== this.#me) return;
    if (state) this.#leaderIs(state);
    else if (frame) this.#leaderSays(frame);
  }

  /** Nothing of what the one before still had to say will come. @param {number} reign */
  #begin(reign) {
    this.#reign = reign;
    this.#shown = false;
    this.#pulses = 0;
  }

  /** @param {StateDetail} state */
  #leaderIs(state) {
    if (state.state === "open") {
      if (!this.#shown) this.#pulses = 0;
      return this.#ask();
    }
    this.#shown = false;
    this.#tell(state);
  }

  /** @param {ServerFrame} frame */
  #leaderSays(frame) {
    if (!this.#shown) {
      // To all only where another conversation was chosen, which begins anew for everybody.
      if (frame.type !== "welcome") return;
      this.#shown = true;
      this.#tell({ state: "open", code: null, retry_ms: null });
    }
    this.dispatchEvent(new CustomEvent("frame", { detail: frame }));
  }

  /** @param {Up | Down} said */
  #post(said) {
    this.#channel?.postMessage(said);
  }

  /** @param {StateDetail} detail */
  #tell(detail) {
    this.#told = detail;
    this.dispatchEvent(new CustomEvent("state", { detail }));
  }
}
