// @ts-check
/** The dashboard's state and its side of the socket: frames in, state out, actions out. No DOM. */

import { CatchUp } from "../wire/catchup.js";
import { passes_ms } from "../wire/frames.js";
import { compose, discard, empty, failed, retry } from "../wire/timeline.js";
import { countRows, emptyInbox, newlyQueued, reduceInbox } from "./inbox.js";
import { emptyRoom, keepRoom, reduceRooms } from "./room.js";
import { withTraces } from "./traces.js";
import { countUnread, parseUnread, readElsewhere, unreadOf } from "./unread.js";

/** @typedef {import("../wire/frames.js").ServerFrame} ServerFrame */
/** @typedef {import("../wire/connection.js").StateDetail} StateDetail */
/** @typedef {import("./inbox.js").Inbox} Inbox */
/** @typedef {import("./inbox.js").Filter} Filter */
/** @typedef {import("./room.js").Room} Room */
/** @typedef {"take"|"hand_back"|"resolve"|"reopen"} VerbName */
/**
 * A verb on its way. `seq` is its number once it is stored; it is over when the conversation shows that event.
 * @typedef {{ verb: VerbName, conversation: string, seq: number|null }} Verb
 */
/**
 * @typedef {object} DeskState
 * @property {StateDetail} link
 * @property {Inbox} inbox
 * @property {import("./unread.js").Unread} unread
 * @property {ReadonlyMap<string, Room>} rooms
 * @property {string|null} open the conversation on screen
 * @property {ReadonlyMap<string, Verb>} verbs by action id
 * @property {Filter} filter
 * @property {string} query
 * @property {number} skew_ms server clock minus ours
 */
/**
 * Something to tell the agent. `again` names the verb that undoes it.
 * @typedef {{ key: string, values?: Record<string, string>, tone?: "good"|"bad", conversation?: string, again?: VerbName }} Notice
 */
/**
 * @typedef {object} Line what the desk needs of a connection
 * @property {(frame: { type: string } & Record<string, unknown>) => boolean} send
 * @property {EventTarget["addEventListener"]} addEventListener
 */

const TYPING_SHOWN_MS = 6_000;

/**
 * Events: `change`; `notice` (detail: Notice); `queued` (detail: rows that now wait for a person);
 * `watched` (detail: the conversation whose state has come).
 */
export class Desk extends EventTarget {
  /** @type {DeskState} */
  state;
  #line;
  #preferences;
  #newId;
  #catchUp;
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  #watchTimer;
  /** Whose older messages have been asked for and have not come. @type {string|null} */
  #earlierOf = null;
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  #earlierTimer;
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  #typingTimer;

  /**
   * @param {Line} line
   * @param {import("./preferences.js").Preferences} preferences
   * @param {() => string} [newId]
   */
  constructor(line, preferences, newId = () => crypto.randomUUID()) {
    super();
    this.#line = line;
    this.#preferences = preferences;
    this.#newId = newId;
    this.#catchUp = new CatchUp(
      () => this.room?.timeline ?? empty(""),
      (frame) => line.send(frame),
    );
    this.state = {
      link: { state: "connecting", code: null, retry_ms: null },
      inbox: emptyInbox(),
      unread: parseUnread(preferences.unread()),
      rooms: new Map(),
      open: null,
      verbs: new Map(),
      filter: /** @type {Filter} */ (preferences.get("filter")),
      query: "",
      skew_ms: 0,
    };
    line.addEventListener("frame", (event) => this.#receive(/** @type {CustomEvent<ServerFrame>} */ (event).detail));
    line.addEventListener("state", (event) => this.#linked(/** @type {CustomEvent<StateDetail>} */ (event).detail));
  }

  /** @returns {Room|null} */
  get room() {
    return this.state.open === null ? null : (this.state.rooms.get(this.state.open) ?? null);
  }

  get me() {
    return this.state.inbox.me;
  }

  /** Shows a conversation live. @param {string} id */
  open(id) {
    const { rooms, unread, open } = this.state;
    if (open === id && this.room?.phase !== "failed") return;
    const seen = unread[id];
    const readUpTo = seen && seen.count > 0 ? seen.read : null;
    const known = rooms.get(id);
    const room = known && known.phase === "ready" ? { ...known, readUpTo } : this.#newRoom(id, readUpTo);
    this.#set({ open: id, rooms: keepRoom(rooms, room) });
    this.#read();
    this.#watch();
  }

  /** With what was written in it and is not stored. @param {string} id @param {number|null} readUpTo */
  #newRoom(id, readUpTo) {
    const room = emptyRoom(id, readUpTo);
    const mine = this.#preferences.unsent.filter(({ conversation }) => conversation === id);
    const timeline = mine.reduce((line, letter) => {
      const written = compose(line, letter);
      return letter.error === null ? written : failed(written, letter.id, letter.error);
    }, room.timeline);
    return { ...room, timeline };
  }

  /** Back to no conversation. */
  leave() {
    if (this.state.open === null) return;
    clearTimeout(this.#watchTimer);
    this.#set({ open: null });
    this.#line.send({ type: "conversation.watch", conversation: null });
  }

  /**
   * @param {VerbName} verb
   * @param {string} conversation
   */
  act(verb, conversation) {
    if (this.verbOf(conversation) !== null) return;
    const id = this.#newId();
    if (!this.#line.send({ type: `conversation.${verb}`, id, conversation })) {
      this.#tell({ key: "toast.offline", tone: "bad" });
      return;
    }
    this.#set({ verbs: new Map(this.state.verbs).set(id, { verb, conversation, seq: null }) });
  }

  /** The verb on its way for a conversation. @param {string} conversation @returns {VerbName|null} */
  verbOf(conversation) {
    for (const pending of this.state.verbs.values()) if (pending.conversation === conversation) return pending.verb;
    return null;
  }

  /** Shown at once, kept until it is stored, and sent again after a connection was lost or the page loaded anew. @param {string} text */
  send(text) {
    const { room } = this;
    if (room === null) return;
    const message = { id: this.#newId(), text, at: Date.now() + this.state.skew_ms };
    this.#preferences.keepUnsent([...this.#preferences.unsent, { ...message, conversation: room.id, error: null }]);
    this.#setRoom({ ...room, timeline: compose(room.timeline, message) });
    this.#line.send({ type: "message.send", id: message.id, conversation: room.id, text });
  }

  /** @param {string} id of a message that was refused */
  retry(id) {
    const { room } = this;
    const message = room?.timeline.pending.find((pending) => pending.id === id);
    if (!room || !message) return;
    this.#letterIs(id, null);
    this.#setRoom({ ...room, timeline: retry(room.timeline, id) });
    this.#line.send({ type: "message.send", id, conversation: room.id, text: message.text });
  }

  /** @param {string} id */
  discard(id) {
    this.#stored(id);
    if (this.room) this.#setRoom({ ...this.room, timeline: discard(this.room.timeline, id) });
  }

  /**
   * What was measured of a conversation's answers.
   * @param {string} conversation
   * @param {readonly import("./traces.js").Trace[]} traces
   */
  learn(conversation, traces) {
    const room = this.state.rooms.get(conversation);
    const all = withTraces(withTraces(new Map(), traces), room?.traces.values() ?? []);
    if (room) this.#setRoom({ ...room, traces: all });
  }

  /** @param {boolean} on */
  setTyping(on) {
    if (this.state.open !== null) this.#line.send({ type: "typing.set", conversation: this.state.open, on });
  }

  /** @param {boolean} online */
  setOnline(online) {
    if (!this.#line.send({ type: "presence.set", online })) this.#tell({ key: "toast.offline", tone: "bad" });
    else this.#tell({ key: online ? "presence.now_online" : "presence.now_away" });
  }

  /** Asks for the page before the first message that is shown. */
  fetchEarlier() {
    const { room } = this;
    if (!room?.timeline.earlier || room.timeline.oldest === null) return;
    this.#earlierOf = room.id;
    this.#line.send({ type: "history.fetch", conversation: room.id, before: room.timeline.oldest });
  }

  /** @param {Filter} filter */
  setFilter(filter) {
    this.#preferences.set("filter", filter);
    this.#set({ filter });
  }

  /** @param {string} query */
  setQuery(query) {
    this.#set({ query });
  }

  /** How many conversations wait in the queue. */
  get queued() {
    return countRows(this.state.inbox, "waiting");
  }

  /** @param {string} conversation */
  unreadOf(conversation) {
    return unreadOf(this.state.unread, conversation);
  }

  /** @param {ServerFrame} frame */
  #receive(frame) {
    const before = this.state.inbox;
    const inbox = reduceInbox(before, frame);
    const rooms = reduceRooms(this.state.rooms, frame);
    if (inbox !== before || rooms !== this.state.rooms) this.#set({ inbox, rooms });
    if (inbox !== before) this.#read();
    if (frame.type === "inbox") this.#welcomed(frame.now);
    if (frame.type === "watching") this.dispatchEvent(new CustomEvent("watched", { detail: frame.row.conversation }));
    if (frame.type === "event" && frame.message?.client_id) this.#stored(frame.message.client_id);
    if (frame.type === "history" && frame.before !== null) this.#earlierOf = null;
    if (frame.type === "ack") this.#acknowledged(frame.id, frame.seq);
    if (frame.type === "refused") this.#refused(frame);
    if (frame.type === "typing" && frame.on) this.#forgetTyping(frame.conversation);
    this.#finishVerbs();
    this.#catchUp.note();
    const queued = newlyQueued(before, inbox);
    if (queued.length > 0) this.dispatchEvent(new CustomEvent("queued", { detail: queued }));
  }

  /** @param {StateDetail} link */
  #linked(link) {
    // A verb whose answer was lost is not repeated: the state after the reconnection says what became of it.
    const verbs = link.state === "open" ? this.state.verbs : new Map();
    this.#set({ link, verbs });
  }

  /** Watches again and sends again what has no answer yet. @param {number} now */
  #welcomed(now) {
    this.#set({ skew_ms: now - Date.now() });
    this.#watch();
    for (const { id, conversation, text, error } of this.#preferences.unsent) {
      if (error === null) this.#line.send({ type: "message.send", id, conversation, text });
    }
  }

  /** Or dropped: a letter need not be kept any more. @param {string} id */
  #stored(id) {
    const { unsent } = this.#preferences;
    if (unsent.some((letter) => letter.id === id)) this.#preferences.keepUnsent(unsent.filter((letter) => letter.id !== id));
  }

  /** @param {string} id @param {string|null} error why it was refused; null while it is on its way */
  #letterIs(id, error) {
    const { unsent } = this.#preferences;
    if (unsent.some((letter) => letter.id === id)) this.#preferences.keepUnsent(unsent.map((letter) => (letter.id === id ? { ...letter, error } : letter)));
  }

  /** @param {string} id @param {number} seq */
  #acknowledged(id, seq) {
    this.#stored(id);
    const verb = this.state.verbs.get(id);
    if (!verb) return;
    this.#set({ verbs: new Map(this.state.verbs).set(id, { ...verb, seq }) });
    const { conversation } = verb;
    this.dispatchEvent(new CustomEvent("acted", { detail: conversation }));
    if (verb.verb === "resolve") this.#tell({ key: "toast.resolved", tone: "good", conversation, again: "reopen" });
    if (verb.verb === "hand_back") this.#tell({ key: "toast.handed_back", tone: "good", conversation, again: "take" });
  }

  /** @param {import("../wire/frames.js").RefusedFrame} frame */
  #refused(frame) {
    if (frame.of === "history.fetch") return this.#fetchEarlierLater(frame);
    if (frame.of === "conversation.watch" && frame.conversation === this.state.open) return this.#watchLater(passes_ms(frame));
    if (frame.id !== null) this.#letterIs(frame.id, frame.code);
    const verb = frame.id === null ? undefined : this.state.verbs.get(frame.id);
    if (frame.id === null || !verb) return;
    this.#dropVerb(frame.id);
    if (frame.code === "already_taken") {
      // The refusal's message is the name of who has it.
      this.#tell({ key: "toast.already_taken", values: { name: frame.message }, tone: "bad" });
      return;
    }
    this.#tell({ key: "toast.refused", values: { verb: verb.verb, reason: frame.code }, tone: "bad" });
  }

  /** What catching up misses it asks for again by itself. @param {import("../wire/frames.js").RefusedFrame} frame */
  #fetchEarlierLater(frame) {
    const again_ms = passes_ms(frame);
    if (again_ms === null || this.#earlierOf !== frame.conversation) return;
    clearTimeout(this.#earlierTimer);
    this.#earlierTimer = setTimeout(() => this.#earlierOf === this.state.open && this.fetchEarlier(), again_ms);
  }

  /** @param {number | null} again_ms null where it is no use */
  #watchLater(again_ms) {
    clearTimeout(this.#watchTimer);
    if (again_ms !== null) this.#watchTimer = setTimeout(() => this.#watch(), again_ms);
  }

  #watch() {
    clearTimeout(this.#watchTimer);
    if (this.state.open !== null) this.#line.send({ type: "conversation.watch", conversation: this.state.open });
  }

  /** Verbs whose event the conversation shows, or whose conversation nobody looks at, are over. */
  #finishVerbs() {
    for (const [id, { seq, conversation }] of this.state.verbs) {
      const room = this.state.rooms.get(conversation);
      const shown = conversation !== this.state.open || !room || room.timeline.seq >= (seq ?? Infinity);
      if (seq !== null && shown) this.#dropVerb(id);
    }
  }

  /** @param {string} id */
  #dropVerb(id) {
    const verbs = new Map(this.state.verbs);
    verbs.delete(id);
    this.#set({ verbs });
  }

  /** @param {string} conversation */
  #forgetTyping(conversation) {
    clearTimeout(this.#typingTimer);
    this.#typingTimer = setTimeout(() => {
      this.#receive({ type: "typing", conversation, author: "customer", name: "", on: false });
    }, TYPING_SHOWN_MS);
  }

  /** Another tab of this agent has counted. @param {string|null} kept what it has kept */
  follow(kept) {
    this.#read(readElsewhere(this.state.unread, parseUnread(kept)));
  }

  #read(known = this.state.unread) {
    const reading = globalThis.document?.hidden ? null : this.state.open;
    const unread = countUnread(known, this.state.inbox, reading);
    if (unread === this.state.unread) return;
    this.#preferences.keepUnread(JSON.stringify(unread));
    this.#set({ unread });
  }

  /** The page is looked at again: what is on screen counts as read. */
  seen() {
    this.#read();
  }

  /** @param {Room} room */
  #setRoom(room) {
    this.#set({ rooms: new Map(this.state.rooms).set(room.id, room) });
  }

  /** @param {Partial<DeskState>} change */
  #set(change) {
    this.state = { ...this.state, ...change };
    this.dispatchEvent(new Event("change"));
  }

  /** @param {Notice} notice */
  #tell(notice) {
    this.dispatchEvent(new CustomEvent("notice", { detail: notice }));
  }
}
