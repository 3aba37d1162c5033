// @ts-check
// Who answers now, and the menu. Emits `choose` (detail: the item's name) and `hide`.

import { icon } from "../wire/icons.js";
import { avatar } from "./bubble.js";
import { fill, h } from "./dom.js";

/** @typedef {import("./words.js").Words} Words */
/** @typedef {{author: "assistant" | "agent" | "queue", name: string, state: string}} Speaker */
/** @typedef {{name: string, icon: string, label: string}} MenuItem */

export class ChatHeader extends HTMLElement {
  /** @type {Words} */
  // @ts-expect-error set before the element is connected
  words;
  #back = h("button", { type: "button", class: "tool", hidden: true, onclick: () => this.#emit("choose", "back") });
  #who = h("div", { class: "speaker" });
  #more = h("button", { type: "button", class: "tool", "aria-haspopup": "menu", "aria-expanded": "false" });
  #close = h("button", { type: "button", class: "tool", onclick: () => this.#emit("hide") });
  #menu = h("div", { class: "menu", role: "menu", hidden: true });
  #shown = "";
  #listed = "";
  /** @type {AbortController | null} */
  #life = null;

  connectedCallback() {
    this.#life = new AbortController();
    const { signal } = this.#life;
    this.append(this.#back, this.#who, this.#more, this.#close, this.#menu);
    this.#more.addEventListener("click", () => (this.#menu.hidden ? this.#open() : this.closeMenu()), { signal });
    this.#menu.addEventListener("keydown", (event) => this.#key(event), { signal });
    document.addEventListener("pointerdown", (event) => this.#outside(event), { signal });
    window.addEventListener("blur", () => this.closeMenu(false), { signal });
    this.localize();
  }

  disconnectedCallback() {
    this.#life?.abort();
    this.replaceChildren();
  }

  localize() {
    for (const [button, name, word] of /** @type {const} */ ([[this.#back, "back", "back"], [this.#more, "more", "menu"], [this.#close, "close", "close"]])) {
      fill(button, icon(name));
      button.setAttribute("aria-label", this.words.say(word));
      button.title = this.words.say(word);
    }
    this.#shown = "";
  }

  /** @param {Speaker} speaker */
  render(speaker) {
    this.#back.hidden = true;
    this.#title(speaker, avatar(speaker.author, speaker.name));
  }

  /** A page with a way back instead of a speaker. @param {string} title */
  page(title) {
    this.#back.hidden = false;
    this.#title({ author: "queue", name: title, state: "" }, null);
  }

  /** @param {MenuItem[]} items */
  set items(items) {
    // Drawn again while it is open, the menu keeps its buttons, for one of them holds the focus.
    const key = JSON.stringify(items);
    if (key === this.#listed) return;
    this.#listed = key;
    fill(this.#menu, ...items.map((item) => h(
      "button", { type: "button", role: "menuitem", tabindex: "-1", onclick: () => this.#choose(item.name) }, icon(item.icon), h("span", {}, item.label),
    )));
  }

  get menuOpen() {
    return !this.#menu.hidden;
  }

  closeMenu(refocus = true) {
    if (this.#menu.hidden) return;
    this.#menu.hidden = true;
    this.#more.setAttribute("aria-expanded", "false");
    if (refocus) this.#more.focus();
  }

  /** @param {Speaker} speaker @param {Node | null} picture */
  #title(speaker, picture) {
    const key = JSON.stringify([speaker, picture === null]);
    if (key === this.#shown) return;
    this.#shown = key;
    fill(this.#who, picture, h("div", { class: "names" }, h("h1", {}, speaker.name), speaker.state !== "" && h("p", {}, speaker.state)));
  }

  #open() {
    this.#emit("menu");
    this.#menu.hidden = false;
    this.#more.setAttribute("aria-expanded", "true");
    this.#move(0);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const items = [...this.#menu.children];
    const at = items.indexOf(/** @type {Element} */ (document.activeElement));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (to !== undefined) this.#move(to);
    else if (event.key === "Escape" || event.key === "Tab") this.closeMenu();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number} to */
  #move(to) {
    const items = /** @type {HTMLElement[]} */ ([...this.#menu.children]);
    items[(to + items.length) % items.length]?.focus();
  }

  /** @param {PointerEvent} event */
  #outside(event) {
    const target = /** @type {Node} */ (event.target);
    if (!this.#menu.contains(target) && !this.#more.contains(target)) this.closeMenu(false);
  }

  /** @param {string} name */
  #choose(name) {
    this.closeMenu();
    this.#emit("choose", name);
  }

  /** @param {string} name @param {unknown} [detail] */
  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

customElements.define("chat-header", ChatHeader);
