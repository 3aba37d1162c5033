// @ts-check
// One message on the screen: text, sources, and in words what became of it. Emits `retry` and `discard`.

import { icon } from "../wire/icons.js";
import { show } from "../wire/markdown.js";
import { fill, h } from "./dom.js";
import { fate } from "./layout.js";
import { Painter } from "./painter.js";

/** @typedef {import("./layout.js").BubbleRow} BubbleRow */
/** @typedef {import("./words.js").Words} Words */

export class Bubble {
  element = h("div", { class: "row" });
  #text = h("div", { class: "bubble" });
  #after = h("div", { class: "after" });
  #words;
  #tell;
  #painter;
  #whole = true;
  /** Shows what the assistant does, until the first word is painted. */
  #working = false;
  /** @type {BubbleRow} */
  #row;

  /** @param {BubbleRow} row @param {Words} words @param {(place: number, upto: number) => void} tell  what is visible of another's text */
  constructor(row, words, tell) {
    this.#row = row;
    this.#words = words;
    this.#tell = tell;
    this.#painter = new Painter({
      paint: (text) => this.#paint(text),
      done: () => this.#settle(),
      still: matchMedia("(prefers-reduced-motion: reduce)").matches,
    });
    this.element.append(h("div", { class: "side" }), h("div", { class: "stack" }, this.#text, this.#after));
    this.update(row);
  }

  /** Code units of the live answer that can be seen. Nothing more is painted of it. */
  freeze() {
    return this.#painter.freeze();
  }

  /** @param {BubbleRow} row */
  update(row) {
    this.#row = row;
    const mine = row.author === "customer";
    this.element.className = `row ${mine ? "mine" : "theirs"} ${row.author}`;
    this.element.classList.toggle("first", row.first);
    this.element.classList.toggle("last", row.last);
    this.element.classList.toggle("failed", row.delivery === "failed");
    this.#avatar();
    if (mine) this.#text.textContent = row.text;
    else this.#write(row);
    this.element.classList.toggle("working", this.#working);
    if (this.#whole) this.#settle();
  }

  /** @param {BubbleRow} row */
  #write(row) {
    const streams = row.live !== null || !this.#whole;
    if (!streams) {
      this.#working = false;
      this.#show(row.text);
      return;
    }
    this.#whole = false;
    if (row.live !== null) this.#work(row);
    this.#painter.aim(row.text, row.live === null || row.live.ended !== null);
  }

  /** What the assistant does until its first word. @param {BubbleRow} row */
  #work({ live, text }) {
    if (live === null || text !== "" || live.ended !== null) return;
    this.#working = true;
    const key = live.activity === "" ? "activity_thinking" : `activity_${live.activity}${live.subject ? "_of" : ""}`;
    fill(this.#text, dots(), h("span", {}, this.#words.say(known(key), { subject: live.subject })));
  }

  /** @param {string} text */
  #paint(text) {
    if (text === "") return;
    this.#working = false;
    this.element.classList.remove("working");
    this.#show(text);
  }

  /** @param {string} text */
  #show(text) {
    show(this.#text, text);
    this.#tell(Number(this.#row.key.slice(1)), text.length);
  }

  /** Everything is shown: sources, times and states may stand below it. */
  #settle() {
    this.#whole = this.#row.live === null;
    if (this.#whole) fill(this.#after, this.#sources(), this.#fate(), this.#meta());
  }

  #sources() {
    const { sources } = this.#row;
    if (sources.length === 0) return null;
    return h("div", { class: "sources", role: "list", "aria-label": this.#words.say("sources") }, ...sources.map(({ title, url }) => {
      const content = [icon("article"), h("span", {}, title)];
      const safe = /^(https?:)?\/\/|^\//.test(url) ? url : null;
      return h("span", { role: "listitem" }, safe === null
        ? h("span", { class: "chip" }, ...content)
        : h("a", { class: "chip", href: safe, target: "_blank", rel: "noopener noreferrer" }, ...content));
    }));
  }

  /** How an answer ended, where it did not simply end. */
  #fate() {
    const said = fate(this.#row, this.#words);
    return said === null ? null : h("div", { class: "fate" }, said);
  }

  #meta() {
    const { author, delivery, last, name, at } = this.#row;
    if (delivery === "failed") return this.#unsent();
    if (delivery === "sending") return h("div", { class: "meta pending" }, this.#words.say("sending"));
    if (!last) return null;
    const clock = h("time", { datetime: new Date(at).toISOString() }, this.#words.time(at));
    const who = author === "customer" ? null : h("span", { class: "who" }, name);
    const role = author === "assistant" ? h("span", {}, this.#words.say("assistant")) : null;
    return h("div", { class: "meta" }, who, role, clock, delivery === "sent" ? h("span", {}, this.#words.say("sent")) : null);
  }

  #unsent() {
    const { error, id } = this.#row;
    const tell = (/** @type {string} */ name) => () => this.element.dispatchEvent(new CustomEvent(name, { bubbles: true, detail: id }));
    return h(
      "div", { class: "meta unsent" }, icon("alert"), h("span", {}, this.#words.say(known(`not_sent_${error}`, "not_sent"))),
      h("button", { type: "button", class: "link", onclick: tell("retry") }, this.#words.say("try_again")),
      h("button", { type: "button", class: "link", onclick: tell("discard") }, this.#words.say("delete")),
    );
  }

  #avatar() {
    const side = this.element.firstElementChild;
    const { author, last, name } = this.#row;
    if (!side || author === "customer") return;
    if (last && side.childElementCount === 0) side.append(avatar(author, name));
    else if (!last) side.replaceChildren();
  }
}

const SENTENCES = new Set([
  "activity_thinking", "activity_order", "activity_order_of", "activity_knowledge", "not_sent_too_long", "not_sent_empty_text",
  "not_sent_bad_text", "not_sent_slow_down",
]);

/** @param {string} key @param {string} [fallback] */
function known(key, fallback = "activity_thinking") {
  return SENTENCES.has(key) ? key : fallback;
}

/** A picture of who speaks: initials of a person, a mark for the assistant. @param {string} author @param {string} name */
export function avatar(author, name) {
  if (author === "assistant") return h("span", { class: "avatar assistant", "aria-hidden": "true" }, icon("sparkle"));
  if (author === "queue") return h("span", { class: "avatar queue", "aria-hidden": "true" }, icon("people"));
  return h("span", { class: "avatar", "aria-hidden": "true" }, initials(name));
}

/** @param {string} name */
function initials(name) {
  const words = name.trim().split(/\s+/).filter(Boolean);
  const letters = words.length > 1 ? [words[0], words[words.length - 1]] : words;
  return letters.map((word) => [...word][0]).join("").toLocaleUpperCase();
}

export function dots() {
  return h("span", { class: "dots", "aria-hidden": "true" }, h("i"), h("i"), h("i"));
}
