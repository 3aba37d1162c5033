// @ts-check
// The customer's line: one conversation shown, what is unsent, and everything a customer can do. No DOM.

import { CatchUp } from "../wire/catchup.js";
import { Connection } from "../wire/connection.js";
import { passes_ms } from "../wire/frames.js";
import * as timeline from "../wire/timeline.js";
import { Outbox, Requests } from "./outbox.js";
import { Paints } from "./paints.js";

/** @typedef {import("../wire/frames.js").ServerFrame} ServerFrame */
/** @typedef {import("../wire/frames.js").WelcomeFrame} WelcomeFrame */
/** @typedef {import("../wire/frames.js").Summary} Summary */
/** @typedef {import("../wire/connection.js").ConnectionState} ConnectionState */
/** @typedef {import("./session.js").Session} Session */

const TYPING_LASTS_MS = 6_000;

/**
 * Events: `change` (anything shown may differ), `refused` (detail: the code of a refusal that belongs to no message) and
 * `forgotten` (whoever was here is gone).
 */
export class Chat extends EventTarget {
  line = timeline.empty("");
  /** @type {ConnectionState} */
  connection = "closed";
  /** @type {number | null} */
  code = null;
  welcomed = false;
  assistant = true;
  contact = false;
  /** @type {string | null} */
  contactRefused = null;
  /** @type {Summary[] | null} */
  earlier = null;
  loadingOlder = false;
  customer = "";
  name = "";
  #session;
  #outbox;
  /** Until open() nobody hears it. @type {Connection | import("../wire/shared-line.js").SharedLine} */
  #socket;
  #share;
  /** @type {Promise<void> | null} */
  #sharing = null;
  #catchUp;
  #locale;
  #framedBy;
  #requests = new Requests((frame) => this.#socket.send(frame));
  #paints = new Paints((frame) => this.#socket.send(frame));
  #startsAnew = false;
  /** Ids of what was written in this page. @type {Set<string>} */
  #written = new Set();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #typingTimer;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #retryTimer;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #olderTimer;

  /**
   * @param {object} options
   * @param {string} options.url
   * @param {Session} options.session
   * @param {import("./storage.js").Keep} options.keep
   * @param {() => string} options.locale
   * @param {() => string} [options.framedBy]  the origin of the page around us; "" where there is none
   * @param {() => Promise<typeof import("../wire/shared-line.js")>} [options.share]  brings what shares one line with the
   *   other tabs of this browser
   */
  constructor({ url, session, keep, locale, framedBy = () => "", share = () => Promise.reject(new Error("nothing is shared")) }) {
    super();
    this.#session = session;
    this.#locale = locale;
    this.#framedBy = framedBy;
    this.#outbox = new Outbox(keep);
    this.#socket = new Connection({ url, hello: (fresh) => this.#hello(fresh) });
    this.#share = share;
    this.#catchUp = new CatchUp(() => this.line, (frame) => this.#socket.send(frame));
    this.#showUnsent();
  }

  async open() {
    this.#sharing ??= this.#shared();
    await this.#sharing;
    this.#socket.open();
  }

  /** @param {string} text */
  say(text) {
    const letter = this.#letter({ id: crypto.randomUUID(), text, at: Date.now() });
    this.#paints.submitted(letter.id);
    this.#written.add(letter.id);
    this.#set(timeline.compose(this.line, letter));
    this.#send(letter);
  }

  /** Sends again what was not sent. A second click finds it on its way and does nothing. @param {string} id */
  retry(id) {
    const shown = this.line.pending.find((one) => one.id === id);
    if (shown?.state !== "failed") return;
    const letter = this.#outbox.all().find((one) => one.id === id) ?? this.#letter(shown);
    this.#set(timeline.retry(this.line, id));
    this.#send({ ...letter, error: null });
  }

  /** @param {string} id */
  discard(id) {
    this.#outbox.remove(id);
    this.#set(timeline.discard(this.line, id));
  }

  /** Ends the running answer, keeping what was painted. @param {number} painted  UTF-16 code units */
  stop(painted) {
    const { live } = this.line;
    if (live) this.#socket.send({ type: "turn.stop", conversation: this.line.id, turn: live.turn, painted });
  }

  /** So much of the answer at this place can be seen. @param {number} place @param {number} upto  UTF-16 code units */
  painted(place, upto) {
    this.#paints.painted(this.line, place, upto);
  }

  /** The customer cannot see the conversation now. */
  hidden() {
    this.#paints.hidden();
  }

  askForHuman() {
    if (!this.asking) this.#request({ type: "handoff.request" });
  }

  get asking() {
    return this.#requests.waitsFor("handoff.request");
  }

  /** @param {string} email */
  leaveContact(email) {
    this.contactRefused = null;
    this.#request({ type: "contact.leave", email });
  }

  get leavingContact() {
    return this.#requests.waitsFor("contact.leave");
  }

  /** @returns {boolean} false without a connection: nothing was asked */
  startNew() {
    return this.#switch({ type: "conversation.new" });
  }

  /** @param {string} conversation */
  show(conversation) {
    return this.#switch({ type: "conversation.open", conversation });
  }

  listEarlier() {
    this.earlier = null;
    this.#changed();
    return this.#socket.send({ type: "conversation.list" });
  }

  loadOlder() {
    if (this.loadingOlder || !this.line.earlier || this.line.oldest === null) return;
    this.loadingOlder = this.#socket.send({ type: "history.fetch", conversation: this.line.id, before: this.line.oldest });
  }

  /** The whole conversation, for a transcript. Resolves with what there is where the line is lost on the way. */
  async loadAll() {
    while (this.line.earlier && this.connection === "open") {
      this.loadOlder();
      await new Promise((resolve) => this.addEventListener("change", resolve, { once: true }));
    }
  }

  /** Something of the conversation shown that nothing answers. @param {string} type @param {object} more @returns {boolean} whether it went */
  tell(type, more) {
    return this.welcomed && this.#socket.send({ type, conversation: this.line.id, ...more });
  }

  /** The page says who its customer is. @param {string} identity */
  identify(identity) {
    const before = this.#session.who;
    this.#session.identity = identity;
    // Whoever wrote here before the page could say who they are is the one it names.
    if (before === "") this.#outbox.handOver(this.#written, this.#session.who);
    else if (this.#session.who !== before) this.#gone();
    if (before === "" || this.#session.who !== before) this.#begin();
  }

  /** Whoever was here has left. @param {number} [at]  when; another tab may have heard of it sooner, and somebody may have come since */
  logout(at = Date.now()) {
    const known = this.#session.who !== "";
    const forgotten = this.#session.forget(at);
    if (!forgotten && !known) return this.follow();
    if (forgotten) this.#outbox.clear();
    this.#gone();
    this.#begin();
  }

  /** Another tab of this site has changed what is kept: who was forgotten there is nobody here either. */
  follow() {
    if (!this.#session.isReplaced) return this.#changed();
    this.#gone();
    this.#begin();
  }

  /** A hello in the language now chosen. */
  relocate() {
    if (this.connection !== "closed") this.#socket.restart();
  }

  /**
   * One line with the other tabs of this browser that speak for the same customer in the same language, where there is
   * a way. Not with those in the frame of another origin's page: the server judges a line by the page around it.
   */
  async #shared() {
    const line = /** @type {Connection} */ (this.#socket);
    const found = await this.#share().catch(() => null);
    if (found !== null) {
      const group = () => {
        this.#leaveReplaced();
        return this.#session.group && [this.#session.group, this.#locale(), this.#framedBy()].join(":");
      };
      this.#socket = new found.SharedLine({ line, group, held: () => this.#held });
    }
    this.#socket.addEventListener("frame", (event) => this.#receive(/** @type {CustomEvent<ServerFrame>} */ (event).detail));
    this.#socket.addEventListener("state", (event) => this.#connected(/** @type {CustomEvent} */ (event).detail));
  }

  /** What a server need not send again. */
  get #held() {
    const { id, epoch, seq } = this.line;
    return epoch === null || this.#startsAnew ? null : { conversation: id, epoch, seq };
  }

  /** @param {boolean} fresh */
  async #hello(fresh) {
    this.#leaveReplaced();
    const credentials = await this.#session.credentials(fresh);
    const framed_by = this.#framedBy();
    return { type: "hello", ...credentials, locale: this.#locale(), ...(framed_by && { framed_by }), ...this.#held };
  }

  /** Forgets the conversation shown and says hello as whoever is here now. */
  #begin() {
    this.#forget();
    if (this.connection !== "closed") this.#socket.restart();
  }

  /** A page that was away may speak for whoever is here now before it is told that the one it shows was forgotten. */
  #leaveReplaced() {
    if (!this.#session.isReplaced) return;
    this.#gone();
    this.#forget();
  }

  #gone() {
    this.dispatchEvent(new Event("forgotten"));
  }

  /** Forgets the conversation shown. */
  #forget() {
    this.#paints.stop();
    this.welcomed = false;
    this.customer = this.name = "";
    this.contact = false;
    this.earlier = null;
    this.#requests.clear();
    this.line = timeline.empty("");
    this.#showUnsent();
    this.#set(this.line);
  }

  /** @param {{state: ConnectionState, code: number | null}} detail */
  #connected({ state, code }) {
    this.connection = state;
    this.code = code;
    this.loadingOlder = false;
    clearTimeout(this.#olderTimer);
    if (state !== "open") this.#catchUp.stop();
    this.#changed();
  }

  /** @param {ServerFrame} frame */
  #receive(frame) {
    switch (frame.type) {
      case "welcome": return this.#welcome(frame);
      case "conversations":
        this.earlier = frame.items;
        return this.#changed();
      case "refused": return this.#refuse(frame);
      case "ack":
        this.#outbox.remove(frame.id);
        if (this.#requests.answered(frame.id) === "contact.leave") this.contact = true;
        break;
      case "history":
        if (frame.before !== null) this.loadingOlder = false;
        break;
      case "typing": this.#expectSilence(); break;
      case "turn.started": this.#paints.started(frame); break;
      case "event": this.#hear(frame); break;
      default:
    }
    this.#set(timeline.reduce(this.line, frame));
  }

  /** @param {WelcomeFrame} frame */
  #welcome(frame) {
    const anew = this.#startsAnew || frame.conversation !== this.line.id || frame.customer !== this.customer;
    this.#startsAnew = false;
    this.welcomed = true;
    this.customer = frame.customer;
    this.name = frame.name;
    this.assistant = frame.assistant;
    this.contact = frame.contact;
    if (anew) this.line = timeline.empty(frame.conversation);
    this.#paints.stop();
    if (frame.live !== null) this.#paints.started(frame.live);
    this.line = timeline.reduce(this.line, frame);
    this.#sendUnsent(frame.conversation);
    this.#requests.deliver(frame.conversation);
    this.#set(this.line);
  }

  /** Until a server has said whose conversation it is, all that is unsent of whom the page speaks for stands in it. */
  #showUnsent() {
    const { who } = this.#session;
    for (const letter of this.#outbox.all()) if (letter.who === who) this.#showLetter(letter);
  }

  /** What is unsent is known to be this customer's, or stored by now, or is sent (again). @param {string} conversation */
  #sendUnsent(conversation) {
    for (const letter of this.#outbox.claim({ customer: this.customer, who: this.#session.who, conversation })) {
      if (letter.conversation === conversation) this.#showLetter(letter);
      const stored = this.line.items.some((item) => item.kind === "message" && item.message.client_id === letter.id);
      if (stored) this.#outbox.remove(letter.id);
      else if (letter.error === null) this.#post(letter);
    }
  }

  /** @param {import("./outbox.js").Letter} letter */
  #showLetter(letter) {
    this.line = timeline.compose(this.line, letter);
    if (letter.error !== null) this.line = timeline.failed(this.line, letter.id, letter.error);
  }

  /** @param {import("../wire/frames.js").RefusedFrame} frame */
  #refuse(frame) {
    const letter = this.#outbox.all().find((one) => one.id === frame.id);
    if (letter === undefined) return this.#refuseAction(frame);
    const again_ms = passes_ms(frame);
    if (frame.code === "slow_down" && again_ms !== null) return this.#postLater(again_ms);
    this.#outbox.change(letter.id, { error: frame.code });
    this.#set(timeline.reduce(this.line, frame));
  }

  /** @param {import("../wire/frames.js").RefusedFrame} frame */
  #refuseAction(frame) {
    const again_ms = passes_ms(frame);
    if (frame.of === "history.fetch" && again_ms !== null) return this.#loadLater(again_ms);
    this.#startsAnew = false;
    if (frame.id !== null) this.#requests.answered(frame.id);
    if (frame.of === "contact.leave") this.contactRefused = frame.code;
    // What a refused hello means, the close behind it says.
    else if (frame.of !== "hello") this.dispatchEvent(new CustomEvent("refused", { detail: frame.code }));
    this.#changed();
  }

  /** What catching up misses it asks for again by itself. @param {number} again_ms */
  #loadLater(again_ms) {
    if (!this.loadingOlder) return;
    clearTimeout(this.#olderTimer);
    this.#olderTimer = setTimeout(() => {
      this.loadingOlder = false;
      this.loadOlder();
    }, again_ms);
  }

  /** @param {import("../wire/frames.js").EventFrame} frame */
  #hear(frame) {
    if (frame.conversation !== this.line.id) return;
    if (frame.kind === "contact") this.contact = true;
    if (frame.message?.client_id) this.#outbox.remove(frame.message.client_id);
  }

  /** @param {Pick<import("./outbox.js").Letter, "id" | "text" | "at">} text @returns {import("./outbox.js").Letter} */
  #letter({ id, text, at }) {
    const [customer, conversation] = this.welcomed ? [this.customer, this.line.id] : [null, null];
    return { id, text, at, who: this.#session.who, customer, conversation, error: null };
  }

  /** @param {import("./outbox.js").Letter} letter */
  #send(letter) {
    if (this.#outbox.put(letter)) this.#post(letter);
    else this.#set(timeline.failed(this.line, letter.id, "unavailable"));
  }

  /** @param {import("./outbox.js").Letter} letter */
  #post({ id, conversation, text }) {
    if (this.welcomed && conversation !== null) this.#socket.send({ type: "message.send", id, conversation, text });
  }

  /** @param {number} delay_ms */
  #postLater(delay_ms) {
    clearTimeout(this.#retryTimer);
    this.#retryTimer = setTimeout(() => {
      for (const letter of this.#outbox.all()) {
        if (letter.customer === this.customer && letter.error === null) this.#post(letter);
      }
    }, delay_ms);
  }

  /** @param {{type: string} & Record<string, unknown>} fields */
  #request(fields) {
    this.#requests.add(fields, this.welcomed ? this.line.id : null);
    this.#changed();
  }

  /** @param {{type: string} & Record<string, unknown>} frame */
  #switch(frame) {
    const asked = this.#socket.send(frame);
    if (asked) this.#startsAnew = true;
    return asked;
  }

  #expectSilence() {
    clearTimeout(this.#typingTimer);
    this.#typingTimer = setTimeout(() => this.#set({ ...this.line, typing: null }), TYPING_LASTS_MS);
  }

  /** @param {timeline.Timeline} line */
  #set(line) {
    this.line = line;
    this.#catchUp.note();
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
