// @ts-check
/** What every element of the dashboard is painted from, and the words several of them share. No DOM. */

import { plain } from "../wire/markdown.js";
import { isMine } from "./inbox.js";
import { age } from "./waiting.js";

/** @typedef {import("./catalog.js").Words} Words */
/** @typedef {import("./desk.js").Desk} Desk */
/** @typedef {import("../wire/frames.js").InboxRow} InboxRow */
/** @typedef {import("../wire/frames.js").Owner} Owner */
/**
 * `now` is the server's time; `patient` says that what loads has taken more than 200 ms.
 * @typedef {{ desk: Desk, words: Words, now: number, patient: boolean, preferences: import("./preferences.js").Preferences }} View
 */

/**
 * The customer's name; a visitor without one is named in the reader's language.
 * @param {string} name
 * @param {Words} words
 */
export function nameOf(name, words) {
  const visitor = /^Visitor (\w{4})$/.exec(name);
  return visitor ? words.t("list.visitor", { code: visitor[1] }) : name;
}

/**
 * @param {number} ms
 * @param {Words} words
 */
export function ageText(ms, words) {
  const { unit, count } = age(ms);
  return words.t(`list.${unit}`, { count });
}

/**
 * Who answers, as `list.owner_me` or `conversation.owner_agent` name it.
 * @param {"list"|"conversation"|"line"} section
 * @param {Owner} owner
 * @param {string|null} me
 * @param {Words} words
 */
export function ownerText(section, owner, me, words) {
  const kind = owner.kind === "agent" && owner.agent === me ? "me" : owner.kind;
  const reasoned = `${section}.owner_${kind}_${owner.reason}`;
  const text = words.t(words.has(reasoned) ? reasoned : `${section}.owner_${kind}`, { name: owner.name });
  return owner.kind === "queue" && owner.team ? `${text} · ${owner.team}` : text;
}

/**
 * @param {View} view
 * @param {InboxRow} row
 */
export function lastLine({ desk, words }, row) {
  if (row.last_author === "assistant") return words.t("list.assistant_said", { text: plain(row.last_line) });
  if (row.last_author !== "agent") return row.last_line;
  return isMine(desk.state.inbox, row)
    ? words.t("list.you", { text: row.last_line })
    : words.t("list.agent_said", { name: row.owner.name || words.t("message.agent"), text: row.last_line });
}
