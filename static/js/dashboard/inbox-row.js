// @ts-check
/** One row of the list. It keeps its elements, so that focus survives every repaint. */

import { icon } from "./icons.js";
import { h, setAttribute, setText, verifiedMark } from "./dom.js";
import { isMine, waitingSince } from "./inbox.js";
import { hue, initials } from "./people.js";
import { ageText, lastLine, nameOf, ownerText } from "./view.js";
import { clock, waitLevel } from "./waiting.js";

/** @typedef {import("./view.js").View} View */
/** @typedef {import("../wire/frames.js").InboxRow} InboxRow */

// A shape for each level, so that the state is not told by colour alone.
const WAIT_ICONS = { calm: "clock", amber: "bell", red: "alert" };

export class InboxRowButton {
  #name = h("b");
  #verified = h("span");
  #line = h("span", { class: "row-line" });
  #when = h("span", { class: "row-when" });
  #badge = h("span", { class: "badge" });
  #unread = h("span", { class: "visually-hidden" });
  #initials = h("span");
  #mark = h("span", { class: "owner-mark" });
  #owner = h("span", { class: "visually-hidden" });
  #avatar = h("span", { class: "avatar", "aria-hidden": "true" }, this.#initials, this.#mark);
  /** @type {InboxRow|null} */
  #painted = null;
  element;
  #item;

  /** @param {() => void} open */
  constructor(open) {
    const mark = h("span", { class: "row-mark" }, this.#badge, this.#unread);
    const top = h(
      "span",
      { class: "row-top" },
      h("span", { class: "row-name" }, this.#name, this.#verified),
      this.#when,
    );
    const bottom = h("span", { class: "row-bottom" }, this.#line, mark);
    this.element = h("button", { type: "button", class: "row" }, this.#avatar, top, bottom, this.#owner);
    this.element.addEventListener("click", open);
    this.#item = h("li", {}, this.element);
  }

  /**
   * @param {View} view
   * @param {InboxRow} row
   * @returns {HTMLElement} the list item
   */
  paint(view, row) {
    if (row !== this.#painted) this.#paintRow(view, row);
    this.#painted = row;
    this.#paintTime(view, row);
    const unread = view.desk.unreadOf(row.conversation);
    this.element.classList.toggle("unread", unread > 0);
    this.#badge.hidden = unread === 0;
    setText(this.#badge, unread > 99 ? "99+" : String(unread));
    setText(this.#unread, unread > 0 ? view.words.t("list.unread", { count: unread }) : "");
    setAttribute(this.element, "aria-current", row.conversation === view.desk.state.open ? "true" : null);
    return this.#item;
  }

  /**
   * @param {View} view
   * @param {InboxRow} row
   */
  #paintRow(view, row) {
    const { words, desk } = view;
    const name = nameOf(row.customer, words);
    const owner = ownerText("list", row.owner, desk.me?.id ?? null, words);
    setText(this.#name, name);
    setText(this.#initials, initials(name));
    setAttribute(this.#avatar, "data-hue", hue(name));
    this.#verified.replaceChildren(...(row.verified ? [verifiedMark(words.t("context.verified"))] : []));
    setText(this.#line, lastLine(view, row));
    setText(this.#owner, row.status === "resolved" ? words.t("list.resolved") : owner);
    setAttribute(this.element, "title", `${name} · ${owner} · ${row.site}`);
    this.#paintMark(row, isMine(desk.state.inbox, row));
  }

  /**
   * @param {InboxRow} row
   * @param {boolean} mine
   */
  #paintMark(row, mine) {
    const { kind, name } = row.owner;
    this.#mark.classList.toggle("mine", mine);
    this.#mark.hidden = kind === "queue" && row.status === "open";
    if (row.status === "resolved") this.#mark.replaceChildren(icon("check"));
    else this.#mark.replaceChildren(kind === "assistant" ? icon("sparkle") : initials(name));
  }

  /**
   * @param {View} view
   * @param {InboxRow} row
   */
  #paintTime({ words, now }, row) {
    const since = waitingSince(row);
    const level = since === null ? "none" : waitLevel(now - since);
    const text =
      since === null ? ageText(now - row.at, words) : words.t(`list.${level}`, { clock: clock(now - since) });
    if (this.#when.dataset.level !== level) {
      this.#when.dataset.level = level;
      this.#when.className = level === "none" ? "row-when" : `row-when wait ${level}`;
      this.#when.replaceChildren(
        ...(level === "none" ? [] : [icon(WAIT_ICONS[/** @type {"calm"|"amber"|"red"} */ (level)])]),
        h("span"),
      );
    }
    setText(/** @type {Element} */ (this.#when.lastElementChild), text);
  }
}
