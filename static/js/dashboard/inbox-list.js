// @ts-check
/** The list of conversations: filters, search, rows, and the state of the connection. */

import { icon } from "./icons.js";
import { arrange, blank, bones, button, emit, h, setAttribute, setText } from "./dom.js";
import { FILTERS, countRows, visibleRows } from "./inbox.js";
import { InboxRowButton } from "./inbox-row.js";

/** @typedef {import("./view.js").View} View */
/** @typedef {import("./inbox.js").Filter} Filter */

const COUNTED = new Set(["waiting", "mine"]);
const EMPTY_ICONS = { waiting: "check", mine: "person", assistant: "sparkle", all: "inbox", resolved: "archive" };

/** Emits `open` (detail: { conversation }), `filter` (detail: { filter }), `query` (detail: { query }), `connect`. */
export class InboxList extends HTMLElement {
  /** @type {Map<Filter, { tab: HTMLButtonElement, count: HTMLElement }>} */
  #tabs = new Map();
  /** @type {Map<string, InboxRowButton>} */
  #rows = new Map();
  #filters = h("div", { class: "filters", role: "group" });
  #search = h("input", {
    type: "search",
    placeholder: " ",
    autocomplete: "off",
    spellcheck: "false",
    enterkeyhint: "search",
  });
  #list = h("ul", { class: "rows" });
  #state = h("div", { class: "rows-state" });
  #link = h("span", { class: "dot" });
  #others = h("span");
  #footer = h("div", { class: "link-line" }, this.#link, this.#others);

  connectedCallback() {
    this.#search.addEventListener("input", () => emit(this, "query", { query: this.#search.value }));
    this.#search.addEventListener("keydown", (event) => this.#searchKey(event));
    this.#link.setAttribute("role", "status");
    this.setAttribute("role", "navigation");
  }

  /** @param {View} view */
  paint(view) {
    if (!this.firstChild) this.#build(view);
    this.#paintTabs(view);
    this.#paintRows(view);
    this.#paintLink(view);
  }

  /** Puts the cursor into the search field. */
  focusSearch() {
    this.#search.focus();
    this.#search.select();
  }

  get focused() {
    return this.#list.contains(document.activeElement);
  }

  /**
   * Moves the focus by one row; from outside the list it starts at the conversation that is open.
   * @param {1|-1} step
   */
  move(step) {
    const rows = [...this.#list.querySelectorAll("button")];
    const at = rows.findIndex((row) => row === document.activeElement);
    const from = at >= 0 ? at : rows.findIndex((row) => row.getAttribute("aria-current") === "true");
    const target = from < 0 ? rows[0] : rows[Math.min(rows.length - 1, Math.max(0, from + step))];
    target?.focus();
    target?.scrollIntoView({ block: "nearest" });
  }

  /** @param {string|null} conversation the row to focus, or the first */
  focusRow(conversation) {
    const row = (conversation !== null && this.#rows.get(conversation)?.element) || this.#list.querySelector("button");
    if (row?.isConnected) row.focus();
    else this.#search.focus();
  }

  /** @param {View} view */
  #build({ words }) {
    this.#filters.setAttribute("aria-label", words.t("filter.label"));
    for (const filter of FILTERS) this.#filters.append(this.#tab(filter, words.t(`filter.${filter}`)));
    this.#search.placeholder = words.t("filter.search");
    this.#search.setAttribute("aria-label", words.t("filter.search"));
    this.#search.setAttribute("aria-keyshortcuts", "/");
    this.setAttribute("aria-label", words.t("list.label"));
    this.#list.setAttribute("aria-label", words.t("list.label"));
    this.append(
      this.#filters,
      h("div", { class: "search" }, this.#search, icon("search"), h("kbd", { "aria-hidden": "true" }, "/")),
      this.#list,
      this.#state,
      this.#footer,
    );
  }

  /**
   * @param {Filter} filter
   * @param {string} label
   */
  #tab(filter, label) {
    const count = h("span", { class: "count" });
    const tab = h("button", { type: "button" }, h("span", {}, label), COUNTED.has(filter) && count);
    tab.addEventListener("click", () => emit(this, "filter", { filter }));
    this.#tabs.set(filter, { tab, count });
    return tab;
  }

  /** @param {View} view */
  #paintTabs({ desk }) {
    for (const [filter, { tab, count }] of this.#tabs) {
      setAttribute(tab, "aria-pressed", String(desk.state.filter === filter));
      const number = countRows(desk.state.inbox, filter);
      setText(count, number > 0 ? String(number) : "");
      count.hidden = number === 0;
      count.classList.toggle("hot", filter === "waiting");
    }
  }

  /** @param {View} view */
  #paintRows(view) {
    const { inbox, filter, query } = view.desk.state;
    const shown = inbox.loaded ? visibleRows(inbox, filter, query) : [];
    const ids = new Set(shown.map((row) => row.conversation));
    for (const id of this.#rows.keys()) if (!ids.has(id)) this.#rows.delete(id);
    arrange(
      this.#list,
      shown.map((row) => this.#row(row.conversation).paint(view, row)),
    );
    this.#list.hidden = shown.length === 0;
    this.#paintState(view, shown.length);
  }

  /** @param {string} id */
  #row(id) {
    const row = this.#rows.get(id) ?? new InboxRowButton(() => emit(this, "open", { conversation: id }));
    this.#rows.set(id, row);
    return row;
  }

  /**
   * What stands in place of rows. Built anew only when it says something else.
   * @param {View} view
   * @param {number} count
   */
  #paintState({ desk, words, patient }, count) {
    const { inbox, filter, query } = desk.state;
    const failed = desk.state.link.state === "closed";
    const says =
      count > 0 || (!inbox.loaded && (failed || !patient))
        ? ""
        : !inbox.loaded
          ? "loading"
          : query
            ? `none ${query}`
            : `empty ${filter}`;
    this.#state.hidden = says === "";
    if (this.#state.dataset.says === says) return;
    this.#state.dataset.says = says;
    this.#state.replaceChildren();
    if (says === "loading") this.#state.append(bones(words.t("shell.loading"), 12));
    else if (says.startsWith("none")) {
      const clear = button({ label: words.t("filter.clear") }, () => this.#clear());
      this.#state.append(blank("search", words.t("list.no_match", { query }), words.t("list.no_match_body"), clear));
    } else if (says) {
      const all =
        filter === "waiting" || filter === "mine"
          ? button({ label: words.t("list.show_all") }, () => emit(this, "filter", { filter: "all" }))
          : undefined;
      this.#state.append(
        blank(EMPTY_ICONS[filter], words.t(`list.empty_${filter}`), words.t(`list.empty_${filter}_body`), all),
      );
    }
  }

  /** @param {View} view */
  #paintLink({ desk, words }) {
    const { state } = desk.state.link;
    const open = state === "open";
    setText(this.#link, words.t(open ? "link.open" : `link.${state}_short`));
    this.#link.classList.toggle("on", open);
    this.#footer.classList.toggle("off", !open);
    const online = desk.state.inbox.agents.filter((agent) => agent.online);
    setText(this.#others, open ? words.t("presence.others", { count: online.length }) : "");
    setAttribute(this.#others, "title", online.map((agent) => agent.name).join(", ") || null);
  }

  /** @param {KeyboardEvent} event */
  #searchKey(event) {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      this.focusRow(null);
    } else if (event.key === "Escape" && this.#search.value !== "") {
      event.preventDefault();
      event.stopPropagation();
      this.#clear();
    }
  }

  #clear() {
    this.#search.value = "";
    this.#search.focus();
    emit(this, "query", { query: "" });
  }
}
