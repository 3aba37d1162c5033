// @ts-check
// The widget: puts the parts together and renders once per animation frame.

import "./composer.js";
import "./header.js";
import "./thread.js";
import { Announcer, ring } from "./announcer.js";
import { Chat } from "./chat.js";
import { h } from "./dom.js";
import { layout } from "./layout.js";
import { PagePort } from "./port.js";
import { Reading } from "./reading.js";
import { Session } from "./session.js";
import { canAskForHuman, greeting, notice, speaker, waiting } from "./status.js";
import { Keep } from "./storage.js";
import { Words } from "./words.js";

/**
 * @typedef {object} Config
 * @property {string} site
 * @property {string} name
 * @property {string} accent
 * @property {string} assistant
 * @property {string[]} origins
 * @property {string} locale
 * @property {Record<string, string>} greeting
 * @property {Record<string, string[]>} suggestions
 * @property {Record<string, import("./words.js").Catalog>} catalogs
 */

const share = () => import("../wire/shared-line.js");

class ChatApp extends HTMLElement {
  /** @type {Config} */
  #config = JSON.parse(document.getElementById("config")?.textContent ?? "{}");
  #keep = new Keep(`chatsvc:${this.#config.site}:`, () => window.localStorage);
  #words = new Words(this.#config.catalogs, String(this.#keep.read("locale") ?? this.#config.locale));
  #port = new PagePort(this.#config.origins);
  #session = new Session({ site: this.#config.site, keep: this.#keep, renewIdentity: () => this.#port.renewIdentity() });
  /** For what a site wants besides: such modules find it here. */
  chat = new Chat({
    url: `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/customer`,
    session: this.#session, keep: this.#keep, locale: () => this.#words.locale, framedBy: () => this.#port.origin,
    share: "locks" in navigator && "BroadcastChannel" in window ? share : undefined,
  });
  #header = /** @type {import("./header.js").ChatHeader} */ (document.createElement("chat-header"));
  #thread = /** @type {import("./thread.js").ChatThread} */ (document.createElement("chat-thread"));
  #composer = /** @type {import("./composer.js").ChatComposer} */ (document.createElement("chat-composer"));
  /** What is brought behind the line. @type {import("./later.js").Later | null} */
  #later = null;
  /** @type {Promise<boolean> | null} */
  #bringing = null;
  #notice = h("div", { class: "notice", role: "status" });
  #announcer = new Announcer();
  #open = window.parent === window;
  #listing = false;
  #reading = new Reading(this.#keep);
  #shownLine = "";
  #frame = 0;
  /** @type {AbortController | null} */
  #life = null;

  connectedCallback() {
    this.#life = new AbortController();
    const { signal } = this.#life;
    document.documentElement.style.setProperty("--accent", this.#config.accent);
    for (const part of [this.#header, this.#thread, this.#composer]) part.words = this.#words;
    this.append(this.#header, this.#notice, this.#thread, this.#composer, this.#announcer.element);
    this.#listen(signal);
    this.#localize();
    this.#draw();
    // Not for the first paint, but before somebody opens it.
    void share().catch(() => {});
    if (this.#open) void this.chat.open();
  }

  disconnectedCallback() {
    this.#life?.abort();
    cancelAnimationFrame(this.#frame);
    this.replaceChildren();
    this.#later = this.#bringing = null;
  }

  /** Resolves with whether the parts are there that nobody sees at first. */
  #bring() {
    this.#bringing ??= import("./later.js").then(({ later }) => {
      const { earlier, waiting } = this.#later = later(this.#words);
      waiting.addEventListener("contact", (event) => this.chat.leaveContact(/** @type {CustomEvent} */ (event).detail));
      earlier.addEventListener("show", (event) => this.#showEarlier(/** @type {CustomEvent} */ (event).detail));
      this.#thread.after(earlier);
      this.#wake();
      return true;
    }).catch(() => {
      this.#bringing = null;
      return false;
    });
    return this.#bringing;
  }

  /** @param {AbortSignal} signal */
  #listen(signal) {
    /** @param {EventTarget} target @param {string} name @param {(detail: any) => void} act */
    const on = (target, name, act) => target.addEventListener(name, (event) => act(/** @type {CustomEvent} */ (event).detail), { signal });
    on(this.#port, "message", (message) => this.#told(message));
    on(this.chat, "change", () => this.#wake());
    on(this.chat, "refused", (code) => this.#announcer.toast(this.#words.say(code === "not_found" ? "gone" : "refused")));
    on(this.chat, "forgotten", () => this.#discardDraft());
    on(this.#header, "choose", (item) => this.#choose(item));
    on(this.#header, "menu", () => { this.#header.items = this.#items(); });
    on(this.#header, "hide", () => this.#hide());
    on(this.#composer, "say", (text) => this.#say(text));
    on(this.#composer, "stop", () => this.#stop());
    on(this.#composer, "human", () => this.chat.askForHuman());
    on(this.#composer, "typing", (now) => this.#type(now));
    on(this.#composer, "draft", () => this.#keep.write("draft", this.#composer.draft || null));
    on(this.#thread, "suggestion", (text) => this.#suggested(text));
    on(this.#thread, "older", () => this.chat.loadOlder());
    on(this.#thread, "retry", (id) => this.chat.retry(id));
    on(this.#thread, "discard", (id) => this.chat.discard(id));
    on(this.#thread, "seen", () => this.#look());
    on(this.#thread, "painted", ({ place, upto }) => this.chat.painted(place, upto));
    on(document, "visibilitychange", () => {
      if (document.hidden) this.chat.hidden();
      this.#wake();
    });
    on(window, "online", () => this.#wake());
    on(window, "storage", () => this.chat.follow());
    // A page that comes out of the browser's memory was told nothing there.
    on(window, "pageshow", () => this.chat.follow());
    on(window, "offline", () => this.#wake());
    document.addEventListener("keydown", (event) => this.#key(event), { signal });
  }

  /** @param {import("./port.js").FromPage} message */
  #told(message) {
    switch (message.type) {
      case "open":
        this.#open = true;
        void this.chat.open();
        this.#thread.toBottom();
        if (!message.quiet) this.#composer.focus();
        break;
      case "closed": this.#open = false; break;
      case "identify": this.chat.identify(message.identity); break;
      case "logout": this.chat.logout(message.at); break;
    }
    this.#wake();
  }

  #hide() {
    this.#open = false;
    this.#port.tell({ type: "hide" });
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key !== "Escape" || event.isComposing) return;
    if (this.#listing) void this.#list(false);
    else this.#hide();
  }

  /** @returns {import("./header.js").MenuItem[]} */
  #items() {
    const sound = this.#keep.read("sound") !== false;
    return [
      { name: "new", icon: "compose", label: this.#words.say("new_conversation") },
      { name: "earlier", icon: "history", label: this.#words.say("earlier_conversations") },
      { name: "sound", icon: sound ? "soundOff" : "soundOn", label: this.#words.say(sound ? "sound_off" : "sound_on") },
      { name: "transcript", icon: "download", label: this.#words.say("download_transcript") },
      { name: "language", icon: "globe", label: this.#words.say("other_language") },
    ];
  }

  /** @param {string} item */
  #choose(item) {
    switch (item) {
      case "new": return this.#needsLine(this.chat.startNew());
      case "earlier": return void this.#list(true);
      case "back": return void this.#list(false);
      case "sound": return this.#keep.write("sound", this.#keep.read("sound") === false);
      case "transcript": return void this.#download();
      case "language": return this.#translate();
    }
  }

  /** @param {boolean} asked */
  #needsLine(asked) {
    if (!asked) this.#announcer.toast(this.#words.say("needs_line"));
    this.#composer.focus();
  }

  /** @param {boolean} on */
  async #list(on) {
    if (on && !(this.chat.listEarlier() && await this.#bring())) return this.#needsLine(false);
    this.#listing = on;
    this.#draw();
    if (on) this.#later?.earlier.focusFirst();
    else this.#composer.focus();
  }

  /** @param {string} id */
  #showEarlier(id) {
    this.#listing = false;
    if (id !== this.chat.line.id) this.#needsLine(this.chat.show(id));
    this.#wake();
  }

  async #download() {
    // Few ask for it: it is not among what everybody waits for.
    const [file] = await Promise.all([import("./transcript.js").catch(() => null), this.chat.loadAll()]);
    if (file === null) return this.#needsLine(false);
    const title = `${this.#config.name}: ${this.#words.say("transcript_title")}`;
    const text = file.transcript(this.#rows(null), { title, words: this.#words, you: this.chat.name || this.#words.say("you") });
    file.download(`${this.#config.name}-${new Date().toISOString().slice(0, 10)}.txt`, text);
  }

  #translate() {
    this.#words.locale = this.#words.locale === "zh" ? "en" : "zh";
    this.#keep.write("locale", this.#words.locale);
    this.#thread.clear();
    this.#localize();
    this.chat.relocate();
    this.#wake();
  }

  #localize() {
    document.documentElement.lang = this.#words.tag;
    document.title = this.#words.say("title", { name: this.#config.name });
    this.#header.localize();
    this.#composer.localize();
    this.#composer.draft = String(this.#keep.read("draft") ?? "");
    this.#announcer.label = this.#words.say("dismiss");
  }

  /** @param {string} text */
  #say(text) {
    this.#reading.mark = null;
    this.#thread.toBottom();
    this.chat.say(text);
  }

  /** A second quick click finds it no longer offered. @param {string} text */
  #suggested(text) {
    if (greeting(this.chat.line, this.#config, this.#words)?.suggestions.includes(text)) this.#say(text);
    this.#composer.focus();
  }

  #discardDraft() {
    this.#composer.draft = "";
    this.#keep.write("draft", null);
  }

  /** @param {boolean} on */
  #type(on) {
    if (this.chat.line.owner.kind === "agent") this.chat.tell("typing.set", { on });
  }

  #stop() {
    const { live } = this.chat.line;
    if (live !== null) this.chat.stop(this.#thread.freeze(live.place));
  }

  #wake() {
    if (this.#frame !== 0) return;
    // A hidden page paints no frames, but its title, badge and sound still have to tell.
    if (document.hidden || !this.#open) return this.#draw();
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw();
    });
  }

  #draw() {
    if (document.hidden || !this.#open) this.chat.hidden();
    const { line } = this.chat;
    if (line.id !== this.#shownLine) this.#change(line.id);
    if (this.chat.welcomed) void this.#bring();
    const rows = this.#rows(this.#reading.mark);
    this.#header.items = this.#header.menuOpen ? this.#items() : [];
    this.#drawHeader();
    this.#drawNotice();
    this.#toggle();
    this.#thread.render(rows, { greeting: greeting(line, this.#config, this.#words), below: this.#drawWaiting(), label: this.#words.say("messages") });
    this.#composer.render({ streaming: line.live !== null && line.live.ended === null, human: canAskForHuman(this.chat) });
    this.#attend(rows);
  }

  /** Another conversation is shown. @param {string} id */
  #change(id) {
    const first = this.#shownLine === "";
    this.#shownLine = id;
    if (!first) this.#thread.clear();
    this.#reading.begin(this.chat.line);
    this.#announcer.forget();
  }

  /** @param {number | null} seen */
  #rows(seen) {
    return layout(this.chat.line, { assistantName: this.#config.assistant, seen, now: Date.now() });
  }

  #drawHeader() {
    if (this.#listing) return this.#header.page(this.#words.say("earlier_conversations"));
    this.#header.render(speaker(this.chat, this.#config, this.#words));
  }

  #drawNotice() {
    const now = notice(this.chat, navigator.onLine, this.#words);
    this.#notice.hidden = now === null;
    this.#notice.className = `notice ${now?.tone ?? ""}`;
    if (this.#notice.textContent !== (now?.text ?? "")) this.#notice.textContent = now?.text ?? "";
  }

  #toggle() {
    this.#thread.hidden = this.#composer.hidden = this.#listing;
    if (this.#later === null) return;
    this.#later.earlier.hidden = !this.#listing;
    if (this.#listing) this.#later.earlier.render(this.chat.earlier, this.chat.line.id);
  }

  #drawWaiting() {
    const now = waiting(this.chat);
    if (now === null || this.#later === null) return null;
    this.#later.waiting.render(now);
    return this.#later.waiting;
  }

  get #looking() {
    return this.#open && !document.hidden && !this.#listing && this.#thread.atBottom;
  }

  #look() {
    if (this.#looking) this.#reading.look(this.chat.line);
  }

  /** Says aloud, rings and counts what is new. @param {import("./layout.js").ThreadRow[]} rows */
  #attend(rows) {
    const { line } = this.chat;
    const news = this.#announcer.announce(rows, line, this.#words);
    if (news > 0 && (document.hidden || !this.#open) && this.#keep.read("sound") !== false) void ring(() => this.#reading.unread(line) > 0);
    if (this.#looking) this.#reading.look(line);
    else this.#reading.miss(line);
    this.#port.tell({ type: "unread", count: this.#reading.unread(line) });
  }
}

customElements.define("chat-app", ChatApp);
