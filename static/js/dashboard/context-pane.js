// @ts-check
/** The right pane: who the customer is, how the last answer was made, orders, earlier conversations. */

import { plain } from "../wire/markdown.js";
import { avatar, button, emit, h, verifiedMark } from "./dom.js";
import { icon } from "./icons.js";
import { ageText, nameOf } from "./view.js";
import { bars, figures, layout, markChips, rounded } from "./waterfall.js";

/** @typedef {import("./view.js").View} View */
/** @typedef {import("./room.js").Room} Room */
/** @typedef {import("../wire/frames.js").Panel} Panel */
/** @typedef {import("../wire/frames.js").OrderView} OrderView */
/** @typedef {import("./catalog.js").Words} Words */

/** @type {Record<string, string>} */
const ORDER_TONES = { delivered: "good", shipped: "moving", in_transit: "moving", cancelled: "bad" };

/** Emits `open` (detail: { conversation }) and `details`. */
export class ContextPane extends HTMLElement {
  #head = h("div", { class: "context-head" });
  #person = h("section", { class: "section" });
  #answer = h("section", { class: "section" });
  #orders = h("section", { class: "section" });
  #earlier = h("section", { class: "section" });
  /** @type {Panel|null|undefined} */
  #panel;
  /** @type {readonly unknown[]|undefined} */
  #stages;
  /** @type {import("./traces.js").Traces|undefined} */
  #traces;

  /** @param {View} view */
  paint(view) {
    if (!this.firstChild) this.#build(view);
    const { room } = view.desk;
    const panel = room?.panel ?? null;
    if (panel !== this.#panel) this.#paintPanel(view, panel);
    this.#panel = panel;
    this.#answer.hidden = panel === null;
    if (room && (room.stages !== this.#stages || room.traces !== this.#traces)) this.#paintAnswer(view.words, room);
    this.#stages = room?.stages;
    this.#traces = room?.traces;
  }

  /** Moves the focus in, when the pane has become a drawer. */
  focusFirst() {
    this.querySelector("button")?.focus();
  }

  /** @param {View} view */
  #build({ words }) {
    this.setAttribute("role", "complementary");
    // It scrolls, also by keys.
    this.tabIndex = 0;
    this.setAttribute("aria-label", words.t("context.label"));
    this.#head.append(
      h("span", {}, words.t("conversation.details")),
      button({ label: words.t("context.close"), icon: "close", className: "quiet", iconOnly: true }, () =>
        emit(this, "details"),
      ),
    );
    this.append(this.#head, this.#person, this.#answer, this.#orders, this.#earlier);
  }

  /**
   * @param {View} view
   * @param {Panel|null} panel
   */
  #paintPanel(view, panel) {
    for (const section of [this.#person, this.#orders, this.#earlier]) section.hidden = panel === null;
    if (panel === null) return;
    const { words } = view;
    this.#person.replaceChildren(person(panel, words), facts(panel, words));
    this.#orders.replaceChildren(h("h2", {}, words.t("context.orders")), ...orders(panel, words));
    this.#earlier.replaceChildren(h("h2", {}, words.t("context.earlier")), this.#earlierList(view, panel));
  }

  /**
   * @param {Words} words
   * @param {Room} room
   */
  #paintAnswer(words, room) {
    if (room.stages.length === 0) {
      this.#answer.replaceChildren(
        h("h2", {}, words.t("context.waterfall")),
        h("p", { class: "quiet-note" }, words.t("context.no_waterfall")),
      );
      return;
    }
    const newest = [...room.traces.values()].at(-1);
    const total = words.t("context.total_ms", { ms: rounded(layout(room.stages).total_ms) });
    this.#answer.replaceChildren(
      h("h2", {}, words.t("context.waterfall"), h("small", {}, total)),
      ...(newest ? [h("p", { class: "quiet-note" }, figures(newest, words))] : []),
      bars(room.stages, words),
      markChips(room.marks, words),
    );
  }

  /**
   * @param {View} view
   * @param {Panel} panel
   */
  #earlierList({ words, now }, panel) {
    if (panel.earlier.length === 0) return h("p", { class: "quiet-note" }, words.t("context.no_earlier"));
    return h(
      "ul",
      { class: "earlier" },
      ...panel.earlier.map((summary) => {
        const state = words.t(summary.status === "resolved" ? "conversation.resolved" : "conversation.open");
        const element = h(
          "button",
          { type: "button" },
          h("b", {}, plain(summary.last_line) || "…"),
          h("small", {}, `${state} · ${ageText(now - summary.at, words)}`),
        );
        element.addEventListener("click", () => emit(this, "open", { conversation: summary.id }));
        return h("li", {}, element);
      }),
    );
  }
}

/**
 * @param {Panel} panel
 * @param {Words} words
 */
function person(panel, words) {
  const name = nameOf(panel.name, words);
  const mark = panel.verified
    ? verifiedMark(words.t("context.verified"), true)
    : h("span", {}, words.t("context.unverified"));
  mark.title = words.t(panel.verified ? "context.verified_hint" : "context.unverified_hint");
  return h(
    "div",
    { class: "person" },
    avatar(name, "large"),
    h("div", {}, h("strong", {}, name), h("small", {}, mark)),
  );
}

/**
 * @param {Panel} panel
 * @param {Words} words
 */
function facts(panel, words) {
  const list = h("dl", { class: "facts" });
  if (panel.email) list.append(h("dt", {}, words.t("context.email")), h("dd", {}, panel.email));
  for (const [name, value] of Object.entries(panel.attributes)) {
    const label = words.has(`attribute.${name}`) ? words.t(`attribute.${name}`) : readable(name);
    list.append(h("dt", {}, label), h("dd", {}, said(words, name, value)));
  }
  return list.firstChild
    ? list
    : h(
        "p",
        { class: "quiet-note person-note" },
        words.t(panel.verified ? "context.no_facts" : "context.unverified_hint"),
      );
}

/** What the shop says of a customer, for people. @param {Words} words @param {string} name @param {string} value */
function said(words, name, value) {
  if (value === "True" || value === "False") return words.t(`fact.${value}`);
  return name === "language" ? words.language(value) : value;
}

/** A name that the shop gave to machines, for people. @param {string} name */
function readable(name) {
  const spaced = name.replace(/[_-]+/g, " ").trim();
  return spaced.charAt(0).toLocaleUpperCase() + spaced.slice(1);
}

/**
 * @param {Panel} panel
 * @param {Words} words
 */
function orders(panel, words) {
  if (panel.orders.length > 0) return panel.orders.map((order) => orderCard(order, words));
  const key = !panel.verified
    ? "orders_visitor"
    : panel.facts_state === "unavailable"
      ? "orders_unavailable"
      : "no_orders";
  return [h("p", { class: "quiet-note" }, words.t(`context.${key}`))];
}

/**
 * @param {OrderView} order
 * @param {Words} words
 */
function orderCard(order, words) {
  const state = words.has(`order_status.${order.status}`) ? words.t(`order_status.${order.status}`) : order.status;
  const details = h("dl", { class: "facts" });
  const add = (/** @type {string} */ key, /** @type {string} */ value) => {
    if (value) details.append(h("dt", {}, words.t(`context.${key}`)), h("dd", {}, value));
  };
  add("placed", day(order.placed_on, words));
  add("eta", day(order.eta, words));
  add("carrier", order.carrier);
  add("tracking", order.tracking);
  add("total", order.total);
  return h(
    "article",
    { class: "order" },
    h(
      "div",
      { class: "order-top" },
      h("span", { class: "order-number" }, icon("order"), `#${order.number}`),
      h("span", { class: `state ${ORDER_TONES[order.status] ?? ""}` }, state),
    ),
    h("ul", {}, ...order.items.map((item) => h("li", {}, item))),
    details,
  );
}

/**
 * An ISO day in the reader's language; anything else as it is.
 * @param {string} iso
 * @param {Words} words
 */
function day(iso, words) {
  const at = /^\d{4}-\d{2}-\d{2}$/.test(iso) ? new Date(`${iso}T12:00:00`).getTime() : Number.NaN;
  return Number.isNaN(at) ? iso : words.date.format(at);
}
