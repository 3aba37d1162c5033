// @ts-check
/** One message: the customer's, a colleague's, the assistant's (live or stored), or ours on its way. */

import { icon } from "./icons.js";
import { safeHref } from "../wire/markdown-inlines.js";
import { show } from "../wire/markdown.js";
import { button, emit, h, setText } from "./dom.js";
import { nameOf } from "./view.js";
import { fillTrace } from "./waterfall.js";

/** @typedef {import("./view.js").View} View */
/** @typedef {import("./lines.js").Line} Line */
/** @typedef {Extract<Line, { kind: "row" }>} RowLine */
/** @typedef {import("../wire/frames.js").Message} Message */
/** @typedef {import("../wire/timeline.js").Live} Live */
/** @typedef {import("../wire/timeline.js").Pending} Pending */

const CUTS = new Set(["taken_over", "stopped", "interrupted"]);

export class MessageNode {
  #by = h("div", { class: "said-by" });
  #bubble = h("div", { class: "bubble" });
  #below = h("div", { class: "below" });
  /** Stays the same element, so that it stays open when the message is painted again. */
  #trace = h("details", { class: "trace" });
  #host;
  /** @type {RowLine|null} */
  #painted = null;
  element = h("li", { class: "said" }, this.#by, this.#bubble, this.#below);

  /** @param {HTMLElement} host which emits for the node */
  constructor(host) {
    this.#host = host;
  }

  /**
   * @param {View} view
   * @param {RowLine} line
   */
  paint(view, line) {
    const before = this.#painted;
    this.#painted = line;
    const linked = view.desk.state.link.state === "open";
    if (before && same(before, line) && line.row.kind !== "pending") return;
    this.element.classList.toggle("first", line.first);
    this.#by.hidden = !line.first;
    if (line.row.kind === "message") this.#paintMessage(view, line, line.row.message);
    else if (line.row.kind === "live") this.#paintLive(view, line.row.live, line.assistant);
    else if (line.row.kind === "pending") this.#paintPending(view, line.row.pending, linked);
  }

  /**
   * @param {View} view
   * @param {RowLine} line
   * @param {Message} message
   */
  #paintMessage({ words, desk }, line, message) {
    const mine = message.author === "agent" && message.name === desk.me?.name;
    const name =
      message.name ||
      (message.author === "customer" && nameOf(desk.room?.panel?.name ?? "", words)) ||
      words.t(`message.${message.author}`);
    this.#dress(message.author);
    this.#label(message.author === "assistant" && "sparkle", mine ? words.t("message.you") : name);
    this.#say(message.author, message.text);
    const cut = CUTS.has(message.state) ? cutLine(words, message.state, line.cutBy, desk.me?.name) : null;
    const time = line.last ? h("div", { class: "meta" }, h("time", {}, words.time(message.at))) : null;
    if (line.trace) fillTrace(this.#trace, line.trace, words);
    this.#below.replaceChildren(...present([sourceChips(message, words), cut, time, line.trace && this.#trace]));
  }

  /**
   * @param {View} view
   * @param {Live} live
   * @param {string} name
   */
  #paintLive({ words }, live, name) {
    this.#dress("assistant");
    // It stays when the message is stored: nothing shifts at the end of the stream.
    this.element.classList.add("streamed");
    this.#label("sparkle", name || words.t("message.assistant"));
    if (live.text) this.#say("assistant", live.text);
    else
      this.#working(
        words.has(`message.${live.activity}`)
          ? words.t(`message.${live.activity}`, { subject: live.subject })
          : words.t("message.working"),
      );
    const cut = live.ended !== null && CUTS.has(live.ended) ? cutLine(words, live.ended, "") : null;
    const writing =
      live.text && !live.ended ? h("div", { class: "meta writing" }, dots(), words.t("message.writing")) : null;
    this.#below.replaceChildren(...present([cut, writing]));
  }

  /**
   * @param {View} view
   * @param {Pending} pending
   * @param {boolean} linked
   */
  #paintPending({ words }, { id, text, state, error }, linked) {
    this.#dress("agent");
    this.#label(false, words.t("message.you"));
    this.#say("agent", text);
    if (state !== "failed") {
      const says = state === "sent" ? "" : words.t(linked ? "message.sending" : "message.waiting_link");
      this.#below.replaceChildren(h("div", { class: "meta" }, says));
      return;
    }
    const reason = words.t(words.has(`error.${error}`) ? `error.${error}` : "error.unknown");
    if (this.#below.dataset.failed === reason) return; // its buttons may hold the focus
    this.#below.dataset.failed = reason;
    this.#below.replaceChildren(
      h(
        "div",
        { class: "meta failed", role: "alert" },
        icon("alert"),
        h("span", {}, words.t("message.failed", { reason })),
        button({ label: words.t("message.retry") }, () => this.#again("retry", id)),
        button({ label: words.t("message.discard") }, () => this.#again("discard", id)),
      ),
    );
  }

  /**
   * @param {"retry"|"discard"} type
   * @param {string} id
   */
  #again(type, id) {
    delete this.#below.dataset.failed;
    emit(this.#host, type, { id });
  }

  /** @param {string} author */
  #dress(author) {
    this.element.classList.toggle("ours", author !== "customer");
    this.element.classList.toggle("assistant", author === "assistant");
    this.#bubble.classList.toggle("plain", author !== "assistant");
  }

  /**
   * @param {string|false} iconName
   * @param {string} name
   */
  #label(iconName, name) {
    this.#by.replaceChildren(...(iconName ? [icon(iconName)] : []), h("span", {}, name));
  }

  /**
   * The assistant writes Markdown; people write text.
   * @param {string} author
   * @param {string} text
   */
  #say(author, text) {
    if (this.#bubble.dataset.working) {
      delete this.#bubble.dataset.working;
      this.#bubble.replaceChildren();
    }
    if (author === "assistant") show(this.#bubble, text);
    else setText(this.#bubble, text);
  }

  /** @param {string} text */
  #working(text) {
    if (this.#bubble.dataset.working === text) return;
    this.#bubble.dataset.working = text;
    this.#bubble.replaceChildren(h("span", { class: "working" }, dots(), text));
  }
}

/**
 * @param {RowLine} a
 * @param {RowLine} b
 */
function same(a, b) {
  if (a.row.kind === "live" && b.row.kind === "live") return a.row.live === b.row.live;
  return a.row === b.row && a.first === b.first && a.last === b.last && a.cutBy === b.cutBy && a.trace === b.trace;
}

/**
 * @param {readonly (HTMLElement|null)[]} nodes
 * @returns {HTMLElement[]}
 */
function present(nodes) {
  return nodes.flatMap((node) => node ?? []);
}

function dots() {
  return h("span", { class: "dots", "aria-hidden": "true" }, h("i"), h("i"), h("i"));
}

/**
 * @param {import("./catalog.js").Words} words
 * @param {string} state
 * @param {string} by
 * @param {string} [me]
 */
function cutLine(words, state, by, me) {
  const text = !by
    ? words.t(`message.${state}`)
    : by === me
      ? words.t("message.taken_over_me")
      : words.t("message.taken_over_by", { name: by });
  return h("div", { class: `cut ${state === "taken_over" ? "" : "calm"}`.trim() }, h("span", {}, text));
}

/**
 * @param {Message} message
 * @param {import("./catalog.js").Words} words
 */
function sourceChips({ sources }, words) {
  if (sources.length === 0) return null;
  const chips = sources.map(({ title, url }) => {
    const href = safeHref(url);
    const inside = [icon("article"), h("span", {}, title)];
    return href === null
      ? h("span", { class: "chip" }, ...inside)
      : h("a", { class: "chip", href, target: "_blank", rel: "noopener noreferrer" }, ...inside);
  });
  return h("div", { class: "sources", role: "group", "aria-label": words.t("message.sources") }, ...chips);
}
