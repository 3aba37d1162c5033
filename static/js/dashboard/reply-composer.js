// @ts-check
/** Where the owning agent writes; for everybody else it says who answers and how to take over. */

import { TEXT_LIMIT } from "../wire/frames.js";
import { icon } from "./icons.js";
import { button, emit, h, setAttribute, setText } from "./dom.js";
import { letterOf } from "./keys.js";
import { allowed } from "./room.js";
import { nameOf } from "./view.js";

/** @typedef {import("./view.js").View} View */
/** @typedef {import("./room.js").Room} Room */

const COUNTER_FROM = 500;
const TYPING_AGAIN_MS = 3_000;
const TYPING_OVER_MS = 5_000;

/** Emits `send` (detail: { text }), `draft` (detail: { conversation, text }), `typing` (detail: { on }), `verb`. */
export class ReplyComposer extends HTMLElement {
  #field = h("textarea", { rows: 1, enterkeyhint: "send" });
  #hint = h("span", { class: "hint" });
  #left = h("span", { role: "status" });
  #send = h("button", { type: "submit", class: "primary" });
  #box = h(
    "form",
    { class: "reply-box" },
    this.#field,
    h("div", { class: "reply-foot" }, this.#hint, this.#left, this.#send),
  );
  #closed = h("div", { class: "reply-closed" });
  /** @type {string|null} */
  #conversation = null;
  #canSend = false;
  #typedAt = 0;
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  #idle;
  /** @type {import("./catalog.js").Words|null} */
  #words = null;

  connectedCallback() {
    this.className = "reply";
    this.append(this.#box, this.#closed);
    this.#field.addEventListener("input", () => this.#typed());
    this.#field.addEventListener("keydown", (event) => this.#key(event));
    this.#field.addEventListener("blur", () => this.#stopTyping());
    this.#box.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
  }

  /**
   * @param {View} view
   * @param {Room} room
   */
  paint(view, room) {
    if (this.#words !== view.words) this.#label(view.words);
    if (this.#conversation !== room.id) this.#start(room.id, view.preferences.draft(room.id));
    const may = allowed(room, view.desk.me?.id ?? null);
    const taking = view.desk.verbOf(room.id) === "take";
    const handing = view.desk.verbOf(room.id) === "hand_back" || view.desk.verbOf(room.id) === "resolve";
    const open = (may.write && !handing) || taking;
    this.#box.hidden = !open;
    this.#closed.hidden = open || room.phase !== "ready";
    this.#canSend = may.write;
    if (open) this.#paintOpen(view, room, taking && !may.write);
    else this.#paintClosed(view, room);
  }

  focusField() {
    if (this.#box.hidden) this.#closed.querySelector("button")?.focus();
    else this.#field.focus();
  }

  /** @param {import("./catalog.js").Words} words */
  #label(words) {
    this.#words = words;
    this.#field.setAttribute("aria-label", words.t("composer.label"));
    this.#send.replaceChildren(icon("send"), h("span", {}, words.t("composer.send")));
  }

  /**
   * @param {string} conversation
   * @param {string} draft
   */
  #start(conversation, draft) {
    this.#stopTyping();
    this.#conversation = conversation;
    this.#field.value = draft;
    this.#grow();
  }

  /**
   * @param {View} view
   * @param {Room} room
   * @param {boolean} taking
   */
  #paintOpen({ words, desk }, room, taking) {
    const offline = desk.state.link.state !== "open";
    const name = nameOf(room.panel?.name || desk.state.inbox.rows.get(room.id)?.customer || "", words);
    setAttribute(this.#field, "placeholder", words.t("composer.placeholder", { name }));
    setText(this.#hint, words.t(taking ? "composer.taking" : offline ? "composer.offline" : "composer.hint"));
    this.#count();
  }

  /**
   * @param {View} view
   * @param {Room} room
   */
  #paintClosed({ words, desk }, room) {
    const { status, owner } = room.timeline;
    const kind = status === "resolved" ? "resolved" : owner.kind;
    const may = allowed(room, desk.me?.id ?? null);
    const verb = may.reopen ? "reopen" : may.take ? "take" : null;
    const name = kind === "agent" ? owner.name : nameOf(room.panel?.name ?? "", words);
    const says = `${kind} ${name} ${verb} ${desk.verbOf(room.id)}`;
    if (this.#closed.dataset.says === says) return;
    this.#closed.dataset.says = says;
    const icons = { resolved: "check", assistant: "sparkle", queue: "clock", agent: "lock" };
    const press = () => emit(this, "verb", { verb, conversation: room.id });
    this.#closed.replaceChildren(
      h("p", {}, icon(icons[/** @type {keyof typeof icons} */ (kind)]), words.t(`composer.${kind}`, { name })),
      ...(verb ? [button({ label: words.t(`conversation.${verb}`), key: letterOf(verb) }, press)] : []),
    );
  }

  #typed() {
    this.#grow();
    this.#count();
    emit(this, "draft", { conversation: this.#conversation, text: this.#field.value });
    if (this.#field.value.trim() === "") return this.#stopTyping();
    if (Date.now() - this.#typedAt > TYPING_AGAIN_MS && this.#canSend) {
      this.#typedAt = Date.now();
      emit(this, "typing", { on: true });
    }
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#stopTyping(), TYPING_OVER_MS);
  }

  #stopTyping() {
    clearTimeout(this.#idle);
    if (this.#typedAt === 0) return;
    this.#typedAt = 0;
    emit(this, "typing", { on: false });
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    // While an input method composes, Enter chooses a word; Safari says so only by the code 229.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    this.#submit();
  }

  #submit() {
    const text = this.#field.value.trim();
    if (!this.#canSend || text === "" || length(text) > TEXT_LIMIT) return;
    this.#field.value = "";
    this.#typed();
    emit(this, "send", { text });
    this.#field.focus();
  }

  #count() {
    const left = TEXT_LIMIT - length(this.#field.value.trim());
    const key = left < 0 ? "composer.over" : "composer.left";
    setText(this.#left, left < COUNTER_FROM ? (this.#words?.t(key, { count: Math.abs(left) }) ?? "") : "");
    this.#left.className = left < 0 ? "over" : "";
    this.#send.disabled = !this.#canSend || left < 0 || left === TEXT_LIMIT;
  }

  /** Where the browser has no `field-sizing`, the field grows by hand. */
  #grow() {
    if (CSS.supports("field-sizing", "content")) return;
    this.#field.style.blockSize = "auto";
    this.#field.style.blockSize = `${this.#field.scrollHeight}px`;
  }
}

/** The server counts code points. @param {string} text */
function length(text) {
  return text.length > TEXT_LIMIT * 2 ? text.length : [...text].length;
}
