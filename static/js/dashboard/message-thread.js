// @ts-check
/** The messages of one conversation. Follows the stream only while the reader is at the end. */

import { icon } from "./icons.js";
import { arrange, button, emit, h } from "./dom.js";
import { MessageNode } from "./message-node.js";
import { threadLines } from "./lines.js";
import { ownerText } from "./view.js";

/** @typedef {import("./view.js").View} View */
/** @typedef {import("./lines.js").Line} Line */
/** @typedef {import("./room.js").Room} Room */

const AT_END_PX = 48;
const NEAR_START_PX = 120;

/** Emits `earlier`, `retry` (detail: { id }), `discard` (detail: { id }). */
export class MessageThread extends HTMLElement {
  #list = h("ol");
  #scroller = h("div", { class: "thread", tabindex: "0", role: "log" }, this.#list);
  #toEnd = h("button", { type: "button", class: "to-end", hidden: true });
  /** @type {Map<string, { line: Line, node: HTMLElement, message: MessageNode|null }>} */
  #nodes = new Map();
  /** @type {string|null} */
  #shown = null;
  /** The first place that is shown and has older ones before it. @type {number|null} */
  #oldest = null;
  #asked = 0;
  #earlier = h("li", { class: "thread-start" });

  connectedCallback() {
    this.className = "thread-frame";
    this.append(this.#scroller, this.#toEnd);
    this.#toEnd.addEventListener("click", () => this.#scrollToEnd());
    this.#scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
  }

  /**
   * @param {View} view
   * @param {Room} room
   */
  paint(view, room) {
    const anew = this.#shown !== room.id;
    if (view.desk.state.link.state !== "open") this.#asked = 0; // the answer will not come
    if (anew) this.#start(view, room.id);
    const atEnd = anew || this.#atEnd();
    const { scrollHeight, scrollTop } = this.#scroller;
    const oldest = this.#list.querySelector("li.said, li.line-event");
    const lines = threadLines(room.timeline, room.readUpTo, (at) => view.words.day.format(at), room.traces);
    const grown = lines.length > this.#nodes.size || room.timeline.live !== null;
    const nodes = lines.map((line) => this.#node(view, line));
    this.#forget(lines);
    arrange(this.#list, [this.#paintStart(view, room), ...nodes]);
    if (atEnd) this.#settle(anew);
    else if (oldest && oldest !== this.#list.querySelector("li.said, li.line-event"))
      this.#scroller.scrollTop = scrollTop + this.#scroller.scrollHeight - scrollHeight;
    else if (grown && this.#scroller.scrollHeight > scrollHeight) this.#toEnd.hidden = false;
  }

  /**
   * @param {View} view
   * @param {string} id
   */
  #start({ words }, id) {
    this.#shown = id;
    this.#asked = 0;
    this.#nodes.clear();
    this.#list.replaceChildren();
    this.#scroller.setAttribute("aria-label", words.t("conversation.label"));
    this.#toEnd.replaceChildren(icon("arrowDown"), words.t("conversation.new_messages"));
    this.#toEnd.hidden = true;
  }

  /**
   * @param {View} view
   * @param {Line} line
   */
  #node(view, line) {
    const known = this.#nodes.get(line.key);
    if (known?.message && line.kind === "row") {
      known.message.paint(view, line);
      return known.node;
    }
    if (known && !known.message && sameLine(known.line, line)) return known.node;
    const message = line.kind === "row" && isSaid(line) ? new MessageNode(this) : null;
    message?.paint(view, /** @type {Extract<Line, { kind: "row" }>} */ (line));
    const node = message?.element ?? systemLine(view, line);
    this.#nodes.set(line.key, { line, node, message });
    return node;
  }

  /** @param {readonly Line[]} lines */
  #forget(lines) {
    const keys = new Set(lines.map((line) => line.key));
    for (const key of this.#nodes.keys()) if (!keys.has(key)) this.#nodes.delete(key);
  }

  /**
   * @param {View} view
   * @param {Room} room
   */
  #paintStart({ words }, room) {
    const { earlier, oldest, items, live, pending } = room.timeline;
    this.#oldest = earlier ? oldest : null;
    const asked = this.#asked === oldest;
    const empty = items.length === 0 && live === null && pending.length === 0;
    const says = earlier ? (asked ? "loading_earlier" : "earlier") : empty ? "empty" : "beginning";
    if (this.#earlier.dataset.says === says) return this.#earlier;
    this.#earlier.dataset.says = says;
    const text = words.t(`conversation.${says}`);
    this.#earlier.replaceChildren(
      earlier
        ? button({ label: text, className: "quiet", icon: "arrowUp" }, () => this.#ask())
        : h("p", { class: "quiet-note" }, text),
    );
    return this.#earlier;
  }

  /** Asks once for each older page. */
  #ask() {
    if (this.#oldest === null || this.#asked === this.#oldest) return;
    this.#asked = this.#oldest;
    emit(this, "earlier");
  }

  #scrolled() {
    if (this.#atEnd()) this.#toEnd.hidden = true;
    if (this.#scroller.scrollTop < NEAR_START_PX) this.#ask();
  }

  #atEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    return scrollHeight - scrollTop - clientHeight < AT_END_PX;
  }

  /** @param {boolean} anew */
  #settle(anew) {
    const unread = anew && this.#list.querySelector(".unread-line");
    if (unread) unread.scrollIntoView({ block: "center" });
    else this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }

  #scrollToEnd() {
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
    this.#toEnd.hidden = true;
    this.#scroller.focus();
  }
}

/**
 * Whether a line of the system says what it said before.
 * @param {Line} a
 * @param {Line} b
 */
function sameLine(a, b) {
  return a.kind === "row" && b.kind === "row" ? a.row === b.row : a.kind === b.kind;
}

/** @param {Extract<Line, { kind: "row" }>} line */
function isSaid({ row }) {
  return row.kind === "message" || row.kind === "live" || row.kind === "pending";
}

/**
 * A day, the unread line, or what happened to the conversation.
 * @param {View} view
 * @param {Line} line
 */
function systemLine({ words, desk, now }, line) {
  if (line.kind === "unread") return h("li", { class: "unread-line" }, words.t("conversation.unread_line"));
  if (line.kind === "day") return h("li", { class: "day" }, dayText(words, line.at, now));
  const { row } = line;
  const [name, text] =
    row.kind === "owner"
      ? ownerLine(row.owner, desk.me?.id ?? null, words)
      : row.kind === "status"
        ? [row.status === "resolved" ? "check" : "reload", words.t(`line.${row.status}`)]
        : ["mail", words.t("line.contact")];
  const at = row.kind === "owner" || row.kind === "status" || row.kind === "contact" ? words.time(row.at) : "";
  return h("li", { class: "line-event" }, icon(name), h("span", {}, text), h("time", {}, at));
}

/**
 * @param {import("../wire/frames.js").Owner} owner
 * @param {string|null} me
 * @param {import("./catalog.js").Words} words
 * @returns {[string, string]}
 */
function ownerLine(owner, me, words) {
  const icons = { assistant: "sparkle", queue: "clock", agent: "person" };
  return [icons[owner.kind], ownerText("line", owner, me, words)];
}

/**
 * @param {import("./catalog.js").Words} words
 * @param {number} at
 * @param {number} now
 */
function dayText(words, at, now) {
  const day = words.day.format(at);
  if (day === words.day.format(now)) return words.t("conversation.today");
  return day === words.day.format(now - 86_400_000) ? words.t("conversation.yesterday") : day;
}
