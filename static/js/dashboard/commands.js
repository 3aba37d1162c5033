// @ts-check
/** What the elements and the keys ask for, done: the one place where an intention becomes an action. */

import { confirmLoss, showKeys } from "./dialogs.js";
import { FILTERS } from "./inbox.js";
import { commandFor } from "./keys.js";
import { allowed } from "./room.js";

/** @typedef {import("./keys.js").Command} Command */
/** @typedef {import("./desk.js").VerbName} VerbName */
/**
 * @typedef {object} Parts
 * @property {import("./desk.js").Desk} desk
 * @property {import("./preferences.js").Preferences} preferences
 * @property {import("./catalog.js").Words} words
 * @property {import("./announcer.js").Announcer} announcer
 * @property {import("../wire/connection.js").Connection} line
 * @property {import("./desk-bar.js").DeskBar} bar
 * @property {import("./inbox-list.js").InboxList} list
 * @property {import("./conversation-view.js").ConversationView} conversation
 * @property {import("./context-pane.js").ContextPane} context
 * @property {() => void} repaint
 */

const DRAWER = matchMedia("(max-width: 1199.98px)");
/** @type {ReadonlySet<string>} */
const VERBS = new Set(["take", "hand_back", "resolve", "reopen"]);

export class Commands {
  #parts;
  /** @type {Element|null} */
  #cameFrom = null;
  /** @type {string|null} */
  #shown = null;
  #taking = false;

  /** @param {Parts} parts */
  constructor(parts) {
    this.#parts = parts;
  }

  listen() {
    const { desk, preferences, line, announcer } = this.#parts;
    on("open", ({ conversation }) => this.open(conversation));
    on("verb", ({ verb, conversation }) => void this.verb(verb, conversation));
    on("command", ({ command }) => this.run(command));
    on("filter", ({ filter }) => desk.setFilter(filter));
    on("query", ({ query }) => desk.setQuery(query));
    on("send", ({ text }) => desk.send(text));
    on("retry", ({ id }) => desk.retry(id));
    on("discard", ({ id }) => desk.discard(id));
    on("draft", ({ conversation, text }) => preferences.keepDraft(conversation, text));
    on("typing", ({ on: typing }) => desk.setTyping(typing));
    on("earlier", () => desk.fetchEarlier());
    on("back", () => this.#back());
    on("details", () => this.#toggleDetails());
    on("watch-again", () => desk.state.open && desk.open(desk.state.open));
    on("connect", ({ action }) => this.#connect(action, line));
    on("setting", ({ name, value }) => this.#setting(name, value));
    on("try-sound", () => announcer.chime());
    on("allow-notifications", () => void this.#allowNotifications());
    on("language", ({ language }) =>
      post(document.body.dataset.language ?? "", { language, next: location.pathname + location.hash }),
    );
    on("log-out", () => void this.#logOut());
    addEventListener("keydown", (event) => this.#key(event));
    addEventListener("popstate", () => this.openFromAddress());
  }

  /** Shows what the address names: a reload and the browser's back button come here. */
  openFromAddress() {
    const id = /^#\/(\w+)$/.exec(location.hash)?.[1] ?? null;
    if (id === this.#parts.desk.state.open) return;
    if (id === null) this.#parts.desk.leave();
    else this.#parts.desk.open(id);
  }

  /** @param {string} id */
  open(id) {
    if (location.hash !== `#/${id}`) history.pushState(null, "", `#/${id}`);
    this.#parts.desk.open(id);
    this.#closeDetails(false);
    this.#parts.conversation.focus({ preventScroll: true });
  }

  /** Which pane is the page on a phone, and where the focus goes once a conversation is taken. */
  followState() {
    const { desk, conversation, repaint } = this.#parts;
    const { open } = desk.state;
    if (open !== this.#shown) {
      this.#shown = open;
      document.body.dataset.page = open === null ? "list" : "conversation";
    }
    const taking = open !== null && desk.verbOf(open) === "take";
    if (taking && !this.#taking)
      requestAnimationFrame(() => requestAnimationFrame(() => conversation.composer.focusField()));
    this.#taking = taking;
    repaint();
  }

  /**
   * @param {VerbName} verb
   * @param {string} [conversation] the open one when not given
   */
  async verb(verb, conversation) {
    const { desk, preferences } = this.#parts;
    const id = conversation ?? desk.state.open;
    if (id === null) return;
    const room = desk.state.rooms.get(id);
    if (!conversation && !(room && allowed(room, desk.me?.id ?? null)[verb])) return;
    const loses = (verb === "hand_back" || verb === "resolve") && preferences.draft(id) !== "";
    if (loses && !(await this.#confirmDraft(verb))) return this.#parts.conversation.composer.focusField();
    desk.act(verb, id);
  }

  /** @param {Command} command */
  run(command) {
    const { desk, list, conversation, preferences, words, announcer } = this.#parts;
    if (VERBS.has(command)) return void this.verb(/** @type {VerbName} */ (command));
    if (command.startsWith("filter_")) return desk.setFilter(FILTERS[Number(command.at(-1)) - 1]);
    switch (command) {
      case "next":
        return list.move(1);
      case "previous":
        return list.move(-1);
      case "filter":
        return list.focusSearch();
      case "reply":
        return conversation.composer.focusField();
      case "context":
        return this.#toggleDetails();
      case "presence":
        return desk.setOnline(!(desk.me?.online ?? false));
      case "sound": {
        this.#setting("sound", preferences.isOn("sound") ? "off" : "on");
        return announcer.say(words.t(preferences.isOn("sound") ? "menu.sound_on" : "menu.sound_off"));
      }
      case "help":
        return void showKeys(words);
      default:
        return this.#back();
    }
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.defaultPrevented) return;
    const target = event.target instanceof Element ? event.target : document.body;
    const command = commandFor(event, {
      typing: target.matches("textarea, select, [contenteditable], input:not([type=checkbox])"),
      modal: document.querySelector("dialog[open], [popover]:popover-open") !== null,
      inList: this.#parts.list.focused,
      letters: this.#parts.preferences.isOn("letters"),
    });
    if (command === null) return;
    event.preventDefault();
    this.run(command);
  }

  /** One step back: out of the details, out of the field, out of the conversation. */
  #back() {
    const { desk, conversation, list } = this.#parts;
    if (document.body.classList.contains("details-open")) return this.#closeDetails(true);
    const active = document.activeElement;
    if (active instanceof HTMLTextAreaElement) return conversation.focus();
    const { open } = desk.state;
    if (active instanceof HTMLInputElement || open === null) return requestRow(list, open);
    history.pushState(null, "", location.pathname);
    desk.leave();
    return requestRow(list, open);
  }

  #toggleDetails() {
    if (!DRAWER.matches) return this.#parts.context.focusFirst();
    if (document.body.classList.contains("details-open")) return this.#closeDetails(true);
    this.#cameFrom = document.activeElement;
    document.body.classList.add("details-open");
    return this.#parts.context.focusFirst();
  }

  /** @param {boolean} focusBack */
  #closeDetails(focusBack) {
    document.body.classList.remove("details-open");
    if (focusBack && this.#cameFrom instanceof HTMLElement) this.#cameFrom.focus();
    this.#cameFrom = null;
  }

  /** @param {VerbName} verb */
  #confirmDraft(verb) {
    const { words } = this.#parts;
    return confirmLoss({
      title: words.t("confirm.draft_title"),
      body: words.t("confirm.draft_body"),
      go: words.t(`conversation.${verb}`),
      stay: words.t("confirm.draft_keep"),
    });
  }

  /**
   * @param {import("./preferences.js").Setting} name
   * @param {string} value
   */
  #setting(name, value) {
    this.#parts.preferences.set(name, value);
    if (name === "theme") {
      if (value === "system") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = value;
    }
    this.#parts.repaint();
  }

  async #allowNotifications() {
    const permission = await Notification.requestPermission();
    this.#setting("notify", permission === "granted" ? "on" : "off");
  }

  /**
   * @param {string} action
   * @param {import("../wire/connection.js").Connection} line
   */
  #connect(action, line) {
    if (action === "log_in")
      location.assign(`${document.body.dataset.login}?next=${encodeURIComponent(location.pathname)}`);
    else if (action === "reload") location.reload();
    else line.restart();
  }

  async #logOut() {
    const { desk, words, preferences } = this.#parts;
    const mine = [...desk.state.inbox.rows.values()].filter(
      (row) => row.status === "open" && row.owner.agent === desk.me?.id,
    ).length;
    const reasons = [
      mine > 0 && words.t("confirm.log_out_body", { count: mine }),
      preferences.hasDrafts() && words.t("confirm.log_out_draft"),
    ].filter((text) => text !== false);
    const texts = {
      title: words.t("confirm.log_out_title"),
      body: reasons.join(" "),
      go: words.t("menu.log_out"),
      stay: words.t("confirm.cancel"),
    };
    if (reasons.length > 0 && !(await confirmLoss(texts))) return;
    preferences.forgetDrafts();
    post(document.body.dataset.logout ?? "", {});
  }
}

/**
 * @param {string} type
 * @param {(detail: any) => void} handle
 */
function on(type, handle) {
  document.body.addEventListener(type, (event) => {
    if (event instanceof CustomEvent) handle(event.detail);
  });
}

/**
 * Focuses the row after the next paint, when it is on the screen again.
 * @param {import("./inbox-list.js").InboxList} list
 * @param {string|null} conversation
 */
function requestRow(list, conversation) {
  requestAnimationFrame(() => requestAnimationFrame(() => list.focusRow(conversation)));
}

/**
 * Sends a form, as a page does.
 * @param {string} action
 * @param {Record<string, string>} fields
 */
function post(action, fields) {
  const form = document.createElement("form");
  form.method = "post";
  form.action = action;
  for (const [name, value] of Object.entries({ ...fields, csrfmiddlewaretoken: document.body.dataset.csrf ?? "" })) {
    const input = document.createElement("input");
    input.type = "hidden";
    input.name = name;
    input.value = value;
    form.append(input);
  }
  document.body.append(form);
  form.submit();
}
