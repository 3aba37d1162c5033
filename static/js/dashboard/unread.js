// @ts-check
/** How many messages of customers an agent has not read yet. Pure; the shell keeps the result per agent. */

import { isMine, isQueued } from "./inbox.js";

/** @typedef {import("./inbox.js").Inbox} Inbox */
/** @typedef {import("../wire/frames.js").InboxRow} InboxRow */
/** @typedef {{ seq: number, at: number, count: number, read: number|null }} Seen the row as last counted; read up to */
/** @typedef {Readonly<Record<string, Seen>>} Unread by conversation */

/** More than an inbox holds when it comes. */
const KEPT = 1_500;

/**
 * Counts what is new. Only conversations that need a human count: the agent's own and the queue.
 * A conversation first seen with the customer's word last counts as one, since the row does not say how many.
 * @param {Unread} unread
 * @param {Inbox} inbox
 * @param {string|null} reading the conversation on screen, which is always read
 * @returns {Unread} the same object when nothing changed
 */
export function countUnread(unread, inbox, reading) {
  const rows = [...inbox.rows.values()].sort((a, b) => b.at - a.at).slice(0, KEPT);
  const next = Object.fromEntries(
    rows.map((row) => [row.conversation, counted(unread[row.conversation], row, inbox, reading)]),
  );
  const same = rows.every((row) => next[row.conversation] === unread[row.conversation]);
  return same && rows.length === Object.keys(unread).length ? unread : next;
}

/**
 * With what was read further in another tab of this agent. What has come since is counted again.
 * @param {Unread} unread
 * @param {Unread} elsewhere
 * @returns {Unread} the same object when nothing was
 */
export function readElsewhere(unread, elsewhere) {
  const further = Object.entries(elsewhere).filter(([id, seen]) => (seen.read ?? -1) > (unread[id]?.read ?? -1));
  return further.length === 0 ? unread : { ...unread, ...Object.fromEntries(further) };
}

/**
 * @param {Unread} unread
 * @param {string} conversation
 */
export function unreadOf(unread, conversation) {
  return unread[conversation]?.count ?? 0;
}

/**
 * What was kept earlier, or nothing when it is not readable.
 * @param {string|null} text
 * @returns {Unread}
 */
export function parseUnread(text) {
  try {
    return Object.fromEntries(Object.entries(JSON.parse(text ?? "{}")).filter(([, seen]) => isSeen(seen)));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return {};
    throw error;
  }
}

/**
 * @param {Seen|undefined} seen
 * @param {InboxRow} row
 * @param {Inbox} inbox
 * @param {string|null} reading
 * @returns {Seen}
 */
function counted(seen, row, inbox, reading) {
  if (seen && row.seq <= seen.seq && (seen.count === 0 || row.conversation !== reading)) return seen;
  const place = { seq: row.seq, at: row.at };
  if (row.conversation === reading) return { ...place, count: 0, read: row.seq };
  const read = seen?.read ?? null;
  if (row.status !== "open" || !(isMine(inbox, row) || isQueued(row))) return { ...place, count: 0, read };
  const spoke = row.last_author === "customer" && row.at !== seen?.at;
  return { ...place, count: (seen?.count ?? 0) + (spoke ? 1 : 0), read };
}

/** @param {unknown} value */
function isSeen(value) {
  if (typeof value !== "object" || value === null) return false;
  const { seq, at, count, read } = /** @type {Record<string, unknown>} */ (value);
  return [seq, at, count].every((number) => Number.isInteger(number)) && (read === null || Number.isInteger(read));
}
