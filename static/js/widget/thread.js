// @ts-check
// The conversation as it scrolls: follows what grows only while the reader is at the bottom. Emits `older`,
// `suggestion` (detail: text), `retry` and `discard` (detail: id), `seen`, `painted` (detail: {place, upto}).

import { icon } from "../wire/icons.js";
import { Bubble, avatar, dots } from "./bubble.js";
import { arrange, fill, h } from "./dom.js";

/** @typedef {import("./layout.js").ThreadRow} ThreadRow */
/** @typedef {import("./words.js").Words} Words */
/** @typedef {{element: HTMLElement, row: ThreadRow, bubble: Bubble | null}} Shown */

const AT_BOTTOM_PX = 48;
const NEAR_TOP_PX = 160;

export class ChatThread extends HTMLElement {
  /** @type {Words} */
  // @ts-expect-error set before the element is connected
  words;
  #scroller = h("div", { class: "scroller", tabindex: "0", role: "log", "aria-live": "off" });
  #content = h("div", { class: "content" });
  #greeting = h("div", { class: "greeting" });
  #list = h("div", { class: "rows" });
  #below = h("div", { class: "below" });
  #jump = h("button", { type: "button", class: "jump", hidden: true, onclick: () => this.toBottom() });
  /** @type {Map<string, Shown>} */
  #shown = new Map();
  #pinned = true;
  #fresh = 0;
  /** @type {AbortController | null} */
  #life = null;
  #watch = new ResizeObserver(() => this.#follow());

  connectedCallback() {
    this.#life = new AbortController();
    this.#content.append(this.#greeting, this.#list, this.#below);
    this.#scroller.append(this.#content);
    this.append(this.#scroller, this.#jump);
    this.#scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true, signal: this.#life.signal });
    this.#watch.observe(this.#content);
    this.#watch.observe(this.#scroller);
  }

  disconnectedCallback() {
    this.#life?.abort();
    this.#watch.disconnect();
    this.replaceChildren();
  }

  /** Whether the newest line can be seen. */
  get atBottom() {
    return this.#pinned;
  }

  /**
   * @param {ThreadRow[]} rows
   * @param {{greeting: {name: string, text: string, suggestions: string[]} | null, below: Node | null, label: string}} around
   */
  render(rows, { greeting, below, label }) {
    this.#scroller.setAttribute("aria-label", label);
    this.#renderGreeting(greeting);
    const before = this.#anchor();
    const known = this.#shown;
    this.#shown = new Map(rows.map((row) => [row.key, this.#show(row, known.get(row.key))]));
    arrange(this.#list, [...this.#shown.values()].map(({ element }) => element));
    this.#count(rows, known);
    if (below === null) this.#below.replaceChildren();
    else if (this.#below.firstChild !== below) this.#below.replaceChildren(below);
    this.#hold(before);
    this.#follow();
  }

  /** Forgets every row: another conversation or language follows. */
  clear() {
    this.#shown = new Map();
    this.#list.replaceChildren();
    this.#greetingKey = "";
    this.#pinned = true;
  }

  /** Freezes the answer being painted. @param {number} place @returns {number} code units shown */
  freeze(place) {
    return this.#shown.get(`p${place}`)?.bubble?.freeze() ?? 0;
  }

  toBottom() {
    this.#pinned = true;
    this.#fresh = 0;
    this.#follow();
    this.#renderJump();
  }

  /** @param {ThreadRow} row @param {Shown | undefined} was @returns {Shown} */
  #show(row, was) {
    if (row.type === "bubble") {
      const bubble = was?.bubble ?? new Bubble(row, this.words, (place, upto) => this.dispatchEvent(new CustomEvent("painted", { detail: { place, upto } })));
      if (was?.bubble && JSON.stringify(was.row) !== JSON.stringify(row)) bubble.update(row);
      return { element: bubble.element, row, bubble };
    }
    if (was !== undefined && JSON.stringify(was.row) === JSON.stringify(row)) return was;
    return { element: this.#line(row), row, bubble: null };
  }

  /** @param {Exclude<ThreadRow, {type: "bubble"}>} row */
  #line(row) {
    switch (row.type) {
      case "day": return h("div", { class: "day" }, h("span", {}, this.words.day(row.at, Date.now())));
      case "unread": return h("div", { class: "unread" }, h("span", {}, this.words.say("new_messages")));
      case "system": return h("div", { class: "system" }, this.words.say(row.word, row.values));
      case "typing": return h(
        "div", { class: "row theirs agent first last typing" }, h("div", { class: "side" }, avatar("agent", row.name)),
        h("div", { class: "stack" }, h("div", { class: "bubble" }, dots(), h("span", { class: "hidden" }, this.words.say("typing", { name: row.name })))),
      );
    }
  }

  #greetingKey = "";

  /** @param {{name: string, text: string, suggestions: string[]} | null} greeting */
  #renderGreeting(greeting) {
    const key = JSON.stringify(greeting);
    if (key === this.#greetingKey) return;
    this.#greetingKey = key;
    if (greeting === null) return this.#greeting.replaceChildren();
    const { name, text, suggestions } = greeting;
    const say = (/** @type {string} */ question) => () => this.dispatchEvent(new CustomEvent("suggestion", { detail: question }));
    fill(
      this.#greeting,
      h("div", { class: "row theirs assistant first last" }, h("div", { class: "side" }, avatar("assistant", name)), h("div", { class: "stack" }, h("div", { class: "bubble" }, h("p", {}, text)))),
      suggestions.length > 0 && h("div", { class: "suggestions" }, ...suggestions.map((question) => (
        h("button", { type: "button", class: "suggestion", onclick: say(question) }, question)
      ))),
    );
  }

  /** @param {ThreadRow[]} rows @param {Map<string, Shown>} known */
  #count(rows, known) {
    if (known.size === 0) return;
    const lastKnown = rows.findLastIndex((row) => known.has(row.key));
    const added = rows.slice(lastKnown + 1).filter((row) => row.type === "bubble");
    if (added.some((row) => row.type === "bubble" && row.author === "customer" && row.id !== null)) this.#pinned = true;
    this.#fresh = this.#pinned ? 0 : this.#fresh + added.filter((row) => row.type === "bubble" && row.author !== "customer").length;
    this.#renderJump();
  }

  #renderJump() {
    this.#jump.hidden = this.#pinned;
    const label = this.#fresh > 0 ? this.words.say("new_below", { count: this.#fresh }) : this.words.say("to_newest");
    this.#jump.classList.toggle("plain", this.#fresh === 0);
    this.#jump.setAttribute("aria-label", label);
    fill(this.#jump, this.#fresh > 0 && label, icon("arrowDown"));
  }

  #scrolled() {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    this.#pinned = scrollHeight - scrollTop - clientHeight < AT_BOTTOM_PX;
    if (this.#pinned) {
      this.#fresh = 0;
      this.dispatchEvent(new CustomEvent("seen"));
    }
    if (scrollTop < NEAR_TOP_PX && this.#shown.size > 0) this.dispatchEvent(new CustomEvent("older"));
    this.#renderJump();
  }

  /** The first bubble the reader sees, and where. A day's line is no hold: it goes up when more of the day arrives. */
  #anchor() {
    if (this.#pinned) return null;
    const top = this.#scroller.getBoundingClientRect().top;
    for (const { element, bubble } of this.#shown.values()) {
      if (bubble === null) continue;
      const at = element.getBoundingClientRect();
      if (at.bottom > top) return { element, at: at.top };
    }
    return null;
  }

  /** Keeps that row where it was. @param {{element: HTMLElement, at: number} | null} anchor */
  #hold(anchor) {
    if (anchor === null || !anchor.element.isConnected) return;
    this.#scroller.scrollTop += anchor.element.getBoundingClientRect().top - anchor.at;
  }

  #follow() {
    if (this.#pinned) this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }
}

customElements.define("chat-thread", ChatThread);
