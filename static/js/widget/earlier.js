// @ts-check
// The customer's earlier conversations. Emits `show` (detail: the conversation's id).

import { icon } from "../wire/icons.js";
import { plain } from "../wire/markdown.js";
import { fill, h } from "./dom.js";

/** @typedef {import("../wire/frames.js").Summary} Summary */
/** @typedef {import("./words.js").Words} Words */

export class ChatEarlier extends HTMLElement {
  /** @type {Words} */
  // @ts-expect-error set before the element is connected
  words;
  #shown = "";

  connectedCallback() {
    this.tabIndex = -1;
  }

  /** @param {Summary[] | null} items  null while they are on their way @param {string} current */
  render(items, current) {
    const shown = JSON.stringify([items, current, this.words.tag]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const focused = this.contains(document.activeElement);
    this.#fill(items, current);
    if (focused) this.focusFirst();
  }

  /** Moves the focus to the first conversation, or to where it will be. */
  focusFirst() {
    (this.querySelector("button") ?? this).focus();
  }

  /** @param {Summary[] | null} items @param {string} current */
  #fill(items, current) {
    if (items === null) return fill(this, h("p", { class: "hint late" }, this.words.say("loading")));
    if (items.length === 0) return fill(this, h("div", { class: "empty" }, icon("history"), h("p", {}, this.words.say("no_earlier"))));
    fill(this, h("ul", {}, ...items.map((item) => h("li", {}, this.#entry(item, item.id === current)))));
  }

  /** @param {Summary} item @param {boolean} current */
  #entry(item, current) {
    const show = () => this.dispatchEvent(new CustomEvent("show", { detail: item.id }));
    const state = item.status === "resolved" ? "resolved_short" : "open_short";
    return h(
      "button", { type: "button", class: "entry", onclick: show, "aria-current": current ? "true" : null },
      h("span", { class: "line" }, plain(item.last_line) || this.words.say("no_messages")),
      h("span", { class: "meta" }, h("span", {}, this.words.say(state)), h("time", {}, this.words.day(item.at, Date.now()))),
      icon("chevronRight"),
    );
  }
}

customElements.define("chat-earlier", ChatEarlier);
