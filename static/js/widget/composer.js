// @ts-check
// Where the customer writes: grows to five lines, sends on Enter, leaves a composing IME alone.
// Emits `say` (detail: text), `stop`, `human`, `typing` (detail: on).

import { TEXT_LIMIT } from "../wire/frames.js";
import { icon } from "../wire/icons.js";
import { fill, h } from "./dom.js";

/** @typedef {import("./words.js").Words} Words */

const COUNTER_FROM = TEXT_LIMIT - 500;
const TYPING_AGAIN_MS = 3_000;
const TYPING_ENDS_MS = 4_000;

export class ChatComposer extends HTMLElement {
  /** @type {Words} */
  // @ts-expect-error set before the element is connected
  words;
  #area = h("textarea", { rows: "1", enterkeyhint: "send", autocomplete: "off", "aria-describedby": "counter" });
  #send = h("button", { type: "submit", class: "send" });
  #human = h("button", { type: "button", class: "human" });
  #counter = h("span", { class: "counter", id: "counter", role: "status", hidden: true });
  #form = h("form", { class: "composer" });
  #streaming = false;
  #typedAt = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #idle;
  /** @type {AbortController | null} */
  #life = null;

  connectedCallback() {
    this.#life = new AbortController();
    const { signal } = this.#life;
    fill(this.#form, h("div", { class: "field" }, this.#area, this.#send), h("div", { class: "foot" }, this.#human, this.#counter));
    this.append(this.#form);
    this.#form.addEventListener("submit", (event) => this.#submit(event), { signal });
    this.#send.addEventListener("click", (event) => this.#click(event), { signal });
    this.#area.addEventListener("keydown", (event) => this.#key(event), { signal });
    this.#area.addEventListener("input", () => this.#written(), { signal });
    this.#human.addEventListener("click", () => this.#emit("human"), { signal });
    this.localize();
  }

  disconnectedCallback() {
    this.#life?.abort();
    clearTimeout(this.#idle);
    this.replaceChildren();
  }

  /** Puts the words of the language now chosen. */
  localize() {
    this.#area.placeholder = this.words.say("write");
    this.#area.setAttribute("aria-label", this.words.say("write"));
    fill(this.#human, icon("person"), h("span", {}, this.words.say("talk_to_human")));
    this.#renderButton();
  }

  /** @param {{streaming: boolean, human: boolean}} now  `human`: whether one can still be asked for */
  render({ streaming, human }) {
    if (this.#streaming !== streaming) {
      this.#streaming = streaming;
      this.#renderButton();
    }
    this.#human.hidden = !human;
  }

  focus() {
    this.#area.focus({ preventScroll: true });
  }

  /** What is being written and not yet sent. */
  get draft() {
    return this.#area.value;
  }

  set draft(text) {
    this.#area.value = text;
    this.#grow();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    // 229 is what Safari reports for the Enter that ends a composition after isComposing has turned false.
    const composing = event.isComposing || event.keyCode === 229;
    if (event.key !== "Enter" || event.shiftKey || composing) return;
    event.preventDefault();
    if (event.repeat) return;
    this.#sendText();
  }

  /** The second of two quick clicks would stop the answer that the first one asked for. @param {MouseEvent} event */
  #click(event) {
    if (event.detail > 1) event.preventDefault();
  }

  /** @param {Event} event */
  #submit(event) {
    event.preventDefault();
    if (this.#streaming && this.#isEmpty()) this.#emit("stop");
    else this.#sendText();
    this.focus();
  }

  #sendText() {
    const text = this.#area.value.trim();
    if (text === "" || text.length > TEXT_LIMIT) return;
    this.#emit("say", text);
    this.draft = "";
    this.#stopTyping();
    this.#renderButton();
    this.#emit("draft");
  }

  #written() {
    this.#grow();
    this.#renderButton();
    this.#emit("draft");
    if (this.#isEmpty()) return this.#stopTyping();
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#stopTyping(), TYPING_ENDS_MS);
    if (Date.now() - this.#typedAt < TYPING_AGAIN_MS) return;
    this.#typedAt = Date.now();
    this.#emit("typing", true);
  }

  #stopTyping() {
    clearTimeout(this.#idle);
    if (this.#typedAt === 0) return;
    this.#typedAt = 0;
    this.#emit("typing", false);
  }

  #isEmpty() {
    return this.#area.value.trim() === "";
  }

  #grow() {
    this.#area.style.blockSize = "auto";
    this.#area.style.blockSize = `${this.#area.scrollHeight}px`;
    const length = this.#area.value.trim().length;
    this.#counter.hidden = length < COUNTER_FROM;
    this.#counter.textContent = length < COUNTER_FROM ? "" : this.words.say("characters", { count: length, limit: TEXT_LIMIT });
    this.#counter.classList.toggle("over", length > TEXT_LIMIT);
  }

  #renderButton() {
    const stops = this.#streaming && this.#isEmpty();
    const label = this.words.say(stops ? "stop_answer" : "send");
    this.#send.classList.toggle("stop", stops);
    this.#send.disabled = !stops && (this.#isEmpty() || this.#area.value.trim().length > TEXT_LIMIT);
    this.#send.setAttribute("aria-label", label);
    this.#send.title = label;
    fill(this.#send, icon(stops ? "stop" : "send"));
  }

  /** @param {string} name @param {unknown} [detail] */
  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

customElements.define("chat-composer", ChatComposer);
