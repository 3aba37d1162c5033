// @ts-check
// One line shared by several pages: whose is what comes down it. The server answers in the order it was asked, so what
// names nobody belongs to the first who still waits for its kind. Pure.

/** @typedef {import("./frames.js").ServerFrame} ServerFrame */
/** @typedef {import("./connection.js").ClientFrame} ClientFrame */
/** What a page has of a conversation. @typedef {{conversation: string, epoch: string, seq: number}} Held */
/**
 * Who is given an answer: one page, or null for all of them. `about` tells it from what the server says unasked.
 * @typedef {{from: string, to: string | null, about?: string}} Asker
 */

/** What answers a frame without an id. @type {Record<string, string>} */
const ANSWERS = {
  "history.fetch": "history", "conversation.list": "conversations", "conversation.new": "welcome", "conversation.open": "welcome",
};

/** Of which events. @param {unknown} conversation @param {unknown} after @param {unknown} before */
const stretch = (conversation, after, before) => `${conversation} ${after ?? ""} ${before ?? ""}`;

export class Hub {
  /** What the line shows, "" before the first welcome. */
  conversation = "";
  #mine;
  /** By the type of the answer, in the order they asked. @type {Map<string, Asker[]>} */
  #waiting = new Map();
  /** Who asked under an id. @type {Map<string, string>} */
  #ids = new Map();
  /** Who sent a type of frame last. @type {Map<string, string>} */
  #last = new Map();
  #drafts = 0;

  /** @param {string} mine  the page that has the line */
  constructor(mine) {
    this.#mine = mine;
  }

  /** The line was welcomed: what was asked before has no answer any more, and the first welcome is of the page that has it. */
  opened() {
    this.#ids.clear();
    this.#waiting = new Map([["welcome", [{ from: this.#mine, to: this.#mine }]]]);
  }

  /** Whether another conversation was chosen and its welcome is on its way to all. */
  get switches() {
    return this.#waiting.get("welcome")?.some(({ to }) => to === null) ?? false;
  }

  /**
   * A page wants to be shown what the line shows, and is told alone.
   * @param {string} from
   * @param {Held | null} held
   * @returns {ClientFrame | null}  what to send for it; null while the line `switches`
   */
  joins(from, held) {
    if (this.switches) return null;
    this.#expect("welcome", { from, to: from });
    const { conversation } = this;
    return { type: "conversation.open", conversation, ...(held?.conversation === conversation ? held : {}) };
  }

  /** A page says something. What it changes for all is told to all. @param {string} from @param {ClientFrame} frame @returns {ClientFrame}  what to send */
  says(from, frame) {
    const answer = ANSWERS[frame.type];
    const about = answer === "history" ? stretch(frame.conversation, frame.after, frame.before) : undefined;
    if (answer !== undefined) this.#expect(answer, { from, to: answer === "welcome" ? null : from, about });
    if (typeof frame.id === "string") this.#ids.set(frame.id, from);
    this.#last.set(frame.type, from);
    // Every page counts its own.
    return frame.type === "draft" ? { ...frame, number: (this.#drafts += 1) } : frame;
  }

  /** Who is told a frame: one page, or null for all of them. @param {ServerFrame} frame @returns {string | null} */
  reader(frame) {
    switch (frame.type) {
      case "ack": return this.#asked(frame.id);
      case "refused": return this.#refused(frame);
      case "history": return this.#next("history", stretch(frame.page.conversation, frame.after, frame.before))?.to ?? null;
      case "conversations": return this.#next("conversations")?.to ?? null;
      case "welcome": {
        const to = this.#next("welcome")?.to ?? null;
        this.conversation = frame.conversation;
        return to;
      }
      default: return null;
    }
  }

  /** @param {import("./frames.js").RefusedFrame} frame */
  #refused({ id, of }) {
    if (id !== null) return this.#asked(id);
    const answer = ANSWERS[of ?? ""];
    if (answer !== undefined) return this.#next(answer)?.from ?? null;
    return this.#last.get(of ?? "") ?? this.#mine;
  }

  /** @param {string} id */
  #asked(id) {
    const from = this.#ids.get(id) ?? null;
    this.#ids.delete(id);
    return from;
  }

  /** @param {string} answer @param {Asker} asker */
  #expect(answer, asker) {
    this.#waiting.set(answer, [...(this.#waiting.get(answer) ?? []), asker]);
  }

  /** @param {string} answer @param {string} [about] */
  #next(answer, about) {
    const waiting = this.#waiting.get(answer) ?? [];
    const index = about === undefined ? 0 : waiting.findIndex((asker) => asker.about === about);
    return index < 0 ? undefined : waiting.splice(index, 1)[0];
  }
}
