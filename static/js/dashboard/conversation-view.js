// @ts-check
/** The middle pane: who answers and the verbs, the messages, the composer. */

import { icon } from "./icons.js";
import { blank, bones, button, emit, h, setAttribute, setText, verifiedMark } from "./dom.js";
import { letterOf } from "./keys.js";
import { MessageThread } from "./message-thread.js";
import { hue, initials } from "./people.js";
import { ReplyComposer } from "./reply-composer.js";
import { allowed } from "./room.js";
import { nameOf, ownerText } from "./view.js";

/** @typedef {import("./view.js").View} View */
/** @typedef {import("./room.js").Room} Room */
/** @typedef {import("./desk.js").VerbName} VerbName */

/** @type {readonly [VerbName, string, string][]} */
const VERBS = [
  ["take", "takeOver", "taking"],
  ["hand_back", "handBack", "handing_back"],
  ["resolve", "check", "resolving"],
  ["reopen", "reload", "reopening"],
];
const OWNER_ICONS = { assistant: "sparkle", queue: "clock", agent: "person" };

/** Emits `verb` (detail: { verb, conversation }), `back`, `details`, `connect`, `watch-again`. */
export class ConversationView extends HTMLElement {
  thread = new MessageThread();
  composer = new ReplyComposer();
  #name = h("span");
  #verified = h("span");
  #initials = h("span", { class: "avatar", "aria-hidden": "true" });
  #state = h("p", { class: "head-state" });
  #verbs = h("div", { class: "verbs" });
  #head = h("div", { class: "head" });
  #strip = h("div", { class: "strip", role: "status", hidden: true });
  #instead = h("div", { class: "instead" });
  #typing = h("div", { class: "typing-line", role: "status" });
  /** @type {Map<VerbName, HTMLButtonElement>} */
  #buttons = new Map();

  /** @param {View} view */
  paint(view) {
    if (!this.firstChild) this.#build(view);
    const { room } = view.desk;
    this.#paintStrip(view);
    this.#head.hidden = room === null;
    const ready = room !== null && room.phase === "ready";
    this.thread.hidden = this.#typing.hidden = this.composer.hidden = !ready;
    this.#paintInstead(view, room);
    if (room === null) return;
    this.#paintHead(view, room);
    if (!ready) return;
    this.thread.paint(view, room);
    this.#paintTyping(view, room);
    this.composer.paint(view, room);
  }

  /** @param {View} view */
  #build({ words }) {
    setAttribute(this, "role", "main");
    setAttribute(this, "aria-label", words.t("conversation.label"));
    for (const [verb, iconName] of VERBS) {
      const press = () => emit(this, "verb", { verb });
      const look = {
        label: words.t(`conversation.${verb}`),
        icon: iconName,
        key: letterOf(verb),
        className: verb === "take" ? "primary" : "",
      };
      this.#buttons.set(verb, button(look, press));
    }
    this.#verbs.append(...this.#buttons.values());
    this.#head.append(
      button({ label: words.t("conversation.back"), icon: "back", iconOnly: true, className: "quiet only-phone" }, () =>
        emit(this, "back"),
      ),
      this.#initials,
      h("div", { class: "head-who" }, h("h2", {}, this.#name, this.#verified), this.#state),
      this.#verbs,
      button(
        {
          label: words.t("conversation.details"),
          icon: "person",
          iconOnly: true,
          className: "quiet only-narrow",
          key: letterOf("context"),
        },
        () => emit(this, "details"),
      ),
    );
    this.append(this.#head, this.#strip, this.#instead, this.thread, this.#typing, this.composer);
  }

  /**
   * @param {View} view
   * @param {Room} room
   */
  #paintHead({ desk, words }, room) {
    const row = desk.state.inbox.rows.get(room.id);
    const name = nameOf(room.panel?.name || row?.customer || "", words);
    setText(this.#name, name);
    this.#initials.hidden = name === "";
    setText(this.#initials, initials(name));
    setAttribute(this.#initials, "data-hue", hue(name));
    const verified = room.panel?.verified ?? row?.verified ?? false;
    if (verified !== this.#verified.hasChildNodes())
      this.#verified.replaceChildren(...(verified ? [verifiedMark(words.t("context.verified"))] : []));
    this.#paintState(desk, words, room, row?.site ?? "");
    const may = allowed(room, desk.me?.id ?? null);
    const pending = desk.verbOf(room.id);
    for (const [verb, , doing] of VERBS) this.#paintVerb(words, verb, doing, may[verb] || pending === verb, pending);
  }

  /**
   * @param {import("./catalog.js").Words} words
   * @param {VerbName} verb
   * @param {string} doing
   * @param {boolean} shown
   * @param {VerbName|null} pending
   */
  #paintVerb(words, verb, doing, shown, pending) {
    const element = /** @type {HTMLButtonElement} */ (this.#buttons.get(verb));
    if (!shown && element === document.activeElement) this.focus(); // the focus stays near
    element.hidden = !shown;
    setAttribute(element, "aria-disabled", pending !== null ? "true" : null);
    setText(
      /** @type {Element} */ (element.querySelector("span")),
      words.t(`conversation.${pending === verb ? doing : verb}`),
    );
  }

  /**
   * @param {View["desk"]} desk
   * @param {import("./catalog.js").Words} words
   * @param {Room} room
   * @param {string} site
   */
  #paintState(desk, words, room, site) {
    const { owner, status } = room.timeline;
    const mine = owner.kind === "agent" && owner.agent === desk.me?.id;
    const resolved = status === "resolved";
    const text =
      room.phase !== "ready"
        ? ""
        : resolved
          ? words.t("conversation.resolved")
          : ownerText("conversation", owner, desk.me?.id ?? null, words);
    const says = `${text}${site}`;
    if (this.#state.dataset.says === says) return;
    this.#state.dataset.says = says;
    this.#state.replaceChildren(
      ...(text
        ? [
            icon(resolved ? "check" : OWNER_ICONS[owner.kind]),
            h("span", { class: mine && !resolved ? "me" : null }, text),
          ]
        : []),
      h("span", { class: "site" }, site && words.t("conversation.site", { site })),
    );
  }

  /** @param {View} view */
  #paintStrip({ desk, words }) {
    const { state, code } = desk.state.link;
    const key = state === "reconnecting" ? "link.reconnecting" : state === "closed" ? closedKey(code) : "";
    this.#strip.hidden = key === "";
    if (this.#strip.dataset.says === key) return;
    this.#strip.dataset.says = key;
    const actions = {
      "link.login_again": "log_in",
      "link.replaced": "reload",
      "link.closed": "retry",
      "link.reconnecting": "retry",
    };
    const action = actions[/** @type {keyof typeof actions} */ (key)];
    this.#strip.replaceChildren(
      ...(key ? [icon("alert"), h("span", {}, words.t(key))] : []),
      ...(action ? [button({ label: words.t(`link.${action}`) }, () => emit(this, "connect", { action }))] : []),
    );
  }

  /**
   * What stands in place of the messages.
   * @param {View} view
   * @param {Room|null} room
   */
  #paintInstead({ words, patient }, room) {
    const says =
      room === null
        ? "none"
        : room.phase === "failed"
          ? `failed ${room.error}`
          : room.phase === "loading"
            ? patient
              ? "loading"
              : "wait"
            : "";
    this.#instead.hidden = says === "";
    if (this.#instead.dataset.says === says) return;
    this.#instead.dataset.says = says;
    this.#instead.replaceChildren();
    if (says === "none") this.#instead.append(noConversation(words));
    else if (says === "loading") this.#instead.append(bones(words.t("conversation.loading"), 4));
    else if (says.startsWith("failed")) {
      const text = words.t(says.endsWith("not_found") ? "conversation.not_found" : "conversation.failed");
      const again = button({ label: words.t("conversation.retry") }, () => emit(this, "watch-again"));
      this.#instead.append(blank("alert", text, "", again));
    }
  }

  /**
   * @param {View} view
   * @param {Room} room
   */
  #paintTyping({ words }, room) {
    const { typing } = room.timeline;
    const shown = typing !== null && typing.author === "customer";
    const text = shown
      ? words.t("conversation.typing", { name: nameOf(typing.name || room.panel?.name || "", words) })
      : "";
    if (this.#typing.dataset.says === text) return;
    this.#typing.dataset.says = text;
    const dots = h("span", { class: "dots", "aria-hidden": "true" }, h("i"), h("i"), h("i"));
    this.#typing.replaceChildren(...(shown ? [dots, h("span", {}, text)] : []));
  }
}

/** @param {number|null} code */
function closedKey(code) {
  const keys = { 4401: "link.login_again", 4403: "link.never_retry", 4409: "link.replaced" };
  return keys[/** @type {keyof typeof keys} */ (code ?? 0)] ?? "link.closed";
}

/** @param {import("./catalog.js").Words} words */
function noConversation(words) {
  const line = h("p", {});
  // The sentence's order is the catalog's; the keys stand where it puts them.
  for (const part of words.t("conversation.none_body").split(/(\{\w+\})/)) {
    const key = /** @type {Record<string, string>} */ ({
      "{up}": "K",
      "{down}": "J",
      "{enter}": "Enter",
      "{help}": "?",
    })[part];
    line.append(key ? h("kbd", {}, key) : part);
  }
  return h("div", { class: "blank" }, icon("chat"), h("strong", {}, words.t("conversation.none_title")), line);
}
