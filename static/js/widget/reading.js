// @ts-check
// What the customer has read of the conversation shown, and what came since. Kept for every tab of the site. No DOM.

import { unreadCount } from "./layout.js";

/** @typedef {import("./storage.js").Keep} Keep */
/** @typedef {import("../wire/timeline.js").Timeline} Timeline */

const KEY = "seen";

export class Reading {
  /** The unread line stands behind this event; null: there is none. @type {number | null} */
  mark = null;
  #keep;

  /** @param {Keep} keep */
  constructor(keep) {
    this.#keep = keep;
  }

  /** How many messages of others nobody has looked at. @param {Timeline} line */
  unread(line) {
    const seen = this.#seen(line);
    return seen === null ? 0 : unreadCount(line, seen);
  }

  /** Another conversation is shown. @param {Timeline} line */
  begin(line) {
    this.mark = null;
    this.miss(line);
  }

  /** The customer sees the newest line. @param {Timeline} line */
  look(line) {
    const seen = this.#seen(line);
    if (line.epoch !== null && (seen === null || seen < line.seq)) this.#keep.write(KEY, { [line.id]: line.seq });
  }

  /** The customer does not see the newest line: what is unread gets its mark. @param {Timeline} line */
  miss(line) {
    if (this.unread(line) > 0) this.mark ??= this.#seen(line);
  }

  /** The last event looked at; null for a conversation never shown here. @param {Timeline} line @returns {number | null} */
  #seen(line) {
    const kept = /** @type {Record<string, number> | null} */ (this.#keep.read(KEY));
    return kept?.[line.id] ?? null;
  }
}
