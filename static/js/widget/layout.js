// @ts-check
// What stands in the thread, top to bottom, as plain values: groups, days, the unread line, system lines. Pure.

import { rows } from "../wire/timeline.js";

/** @typedef {import("../wire/timeline.js").Timeline} Timeline */
/** @typedef {import("../wire/timeline.js").Row} Row */
/** @typedef {import("../wire/timeline.js").Live} Live */
/** @typedef {import("../wire/frames.js").Message} Message */
/** @typedef {"sending" | "sent" | "failed" | ""} Delivery */
/**
 * @typedef {object} BubbleRow
 * @property {"bubble"} type
 * @property {string} key
 * @property {"customer" | "assistant" | "agent"} author
 * @property {string} name
 * @property {string} text
 * @property {number} at
 * @property {Message["state"]} state
 * @property {import("../wire/frames.js").Source[]} sources
 * @property {Live | null} live
 * @property {Delivery} delivery
 * @property {string | null} error
 * @property {string | null} id  of an unstored message
 * @property {string} cutBy  who took over this answer
 * @property {boolean} first  of its group
 * @property {boolean} last  of its group
 */
/** @typedef {{type: "day", key: string, at: number}} DayRow */
/** @typedef {{type: "unread", key: string}} UnreadRow */
/** @typedef {{type: "system", key: string, word: string, values: Record<string, string>}} SystemRow */
/** @typedef {{type: "typing", key: string, name: string}} TypingRow */
/** @typedef {BubbleRow | DayRow | UnreadRow | SystemRow | TypingRow} ThreadRow */

const GROUP_MS = 5 * 60_000;

/**
 * @param {Timeline} line
 * @param {{assistantName: string, seen: number | null, now: number}} about  `seen`: the last event known to have been read
 * @returns {ThreadRow[]}
 */
export function layout(line, { assistantName, seen, now }) {
  /** @type {ThreadRow[]} */
  const shown = [];
  let agent = "";
  let day = "";
  let marked = seen === null;
  for (const row of rows(line)) {
    const made = rowOf(row, { assistantName, agent, now });
    if (row.kind === "owner" && row.owner.kind === "agent") agent = row.owner.name;
    if (made === null) continue;
    const at = made.type === "bubble" ? made.at : "at" in row ? row.at : now;
    if (dayOf(at) !== day) shown.push({ type: "day", key: `d${dayOf(at)}`, at });
    day = dayOf(at);
    if (!marked && isUnread(row, seen)) {
      shown.push({ type: "unread", key: "unread" });
      marked = true;
    }
    shown.push(made);
  }
  if (line.typing !== null && line.typing.author === "agent") shown.push({ type: "typing", key: "typing", name: line.typing.name });
  return delivered(grouped(shown));
}

/** How an answer ended; null where it simply ended. @param {BubbleRow} row @param {import("./words.js").Words} words */
export function fate({ state, cutBy }, words) {
  if (state === "stopped" || state === "interrupted") return words.say(`answer_${state}`);
  if (state === "taken_over") return cutBy === "" ? words.say("answer_taken_over") : words.say("answer_taken_over_by", { name: cutBy });
  return null;
}

/** Messages of others after `seen`. @param {Timeline} line @param {number} seen */
export function unreadCount(line, seen) {
  return line.items.filter((item) => isUnread(item, seen)).length;
}

/** @param {Row} row @param {number | null} seen */
function isUnread(row, seen) {
  return seen !== null && row.kind === "message" && row.message.author !== "customer" && row.place > seen;
}

/** @param {Row} row @param {{assistantName: string, agent: string, now: number}} context @returns {ThreadRow | null} */
function rowOf(row, { assistantName, agent, now }) {
  switch (row.kind) {
    case "message": return messageRow(row.message, assistantName);
    case "live": return bubble({
      key: `p${row.place}`, author: "assistant", name: assistantName, text: row.live.text, at: now, live: row.live,
    });
    case "pending": return bubble({
      key: `c${row.pending.id}`, author: "customer", text: row.pending.text, at: row.pending.at, id: row.pending.id,
      delivery: row.pending.state, error: row.pending.error,
    });
    case "owner": return ownerRow(row.place, row.owner, agent);
    case "status": return system(row.place, row.status === "resolved" ? "resolved" : "reopened");
    case "contact": return system(row.place, "contact_left");
    default: return null;
  }
}

/** @param {Message} message @param {string} assistantName */
function messageRow(message, assistantName) {
  const mine = message.author === "customer";
  return bubble({
    key: mine && message.client_id ? `c${message.client_id}` : `p${message.place}`, author: message.author,
    name: message.name || (message.author === "assistant" ? assistantName : ""), text: message.text, at: message.at,
    state: message.state, sources: message.sources, delivery: mine ? "sent" : "",
  });
}

/** @param {Partial<BubbleRow> & Pick<BubbleRow, "key" | "author" | "text" | "at">} given @returns {BubbleRow} */
function bubble(given) {
  return {
    type: "bubble", name: "", state: "complete", sources: [], live: null, delivery: "", error: null, id: null, cutBy: "",
    first: true, last: true, ...given,
  };
}

/** @param {number} place @param {import("../wire/frames.js").Owner} owner @param {string} agent  who had it before */
function ownerRow(place, owner, agent) {
  if (owner.kind === "agent") return system(place, "joined", { name: owner.name });
  if (owner.kind === "queue") return system(place, owner.reason === "button" ? "asked_for_human" : "handing_over");
  return owner.reason === "agent" && agent !== "" ? system(place, "handed_back", { name: agent }) : null;
}

/** @param {number} place @param {string} word @param {Record<string, string>} [values] @returns {SystemRow} */
function system(place, word, values = {}) {
  return { type: "system", key: `s${place}`, word, values };
}

/** Marks the first and last of each group and says who cut an answer short. @param {ThreadRow[]} shown */
function grouped(shown) {
  return shown.map((row, index) => {
    if (row.type !== "bubble") return row;
    const taker = row.state === "taken_over" ? shown.slice(index).find((later) => later.type === "system" && later.word === "joined") : undefined;
    const cutBy = taker?.type === "system" ? taker.values.name : "";
    return { ...row, cutBy, first: !together(shown[index - 1], row), last: !together(row, shown[index + 1]) };
  });
}

/** @param {ThreadRow | undefined} above @param {ThreadRow | undefined} below */
function together(above, below) {
  return above?.type === "bubble" && below?.type === "bubble" && above.author === below.author && above.name === below.name
    && below.at - above.at < GROUP_MS && above.state === "complete";
}

/** Only the last of our stored messages says that it was sent. @param {ThreadRow[]} shown @returns {ThreadRow[]} */
function delivered(shown) {
  const last = shown.findLast((row) => row.type === "bubble");
  return shown.map((row) => (
    row.type === "bubble" && row.delivery === "sent" && row !== last ? { ...row, delivery: /** @type {Delivery} */ ("") } : row
  ));
}

/** @param {number} at */
function dayOf(at) {
  const date = new Date(at);
  return `${date.getFullYear()}-${date.getMonth()}-${date.getDate()}`;
}
