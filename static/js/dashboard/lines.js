// @ts-check
/** What is on the screen of a thread, in order: days, groups, the unread line. Pure. */

import { rows } from "../wire/timeline.js";
import { traceOf } from "./traces.js";

/** @typedef {import("../wire/timeline.js").Timeline} Timeline */
/** @typedef {import("../wire/timeline.js").Row} Row */
/**
 * @typedef {{ key: string, kind: "day", at: number } | { key: string, kind: "unread" }
 *   | { key: string, kind: "row", row: Row, first: boolean, last: boolean, cutBy: string, assistant: string,
 *     trace: import("./traces.js").Trace|null }} Line
 * `first` and `last` of a group of one speaker; `cutBy` names who took over right after a cut answer,
 * `assistant` how the assistant was last called, `trace` what was measured of an answer.
 */

const GROUP_MS = 5 * 60_000;

/**
 * @param {Timeline} timeline
 * @param {number|null} readUpTo
 * @param {(at: number) => string} dayOf names the day a time falls on
 * @param {import("./traces.js").Traces} [traces]
 * @returns {Line[]}
 */
export function threadLines(timeline, readUpTo, dayOf, traces = new Map()) {
  const shown = rows(timeline);
  /** @type {Line[]} */
  const lines = [];
  let day = "";
  let unread = readUpTo === null;
  let assistant = "";
  shown.forEach((row, index) => {
    const at = timeOf(row, lines);
    if (dayOf(at) !== day) {
      day = dayOf(at);
      lines.push({ key: `day ${day}`, kind: "day", at });
    }
    if (!unread && isNewToAgent(row, readUpTo ?? 0)) {
      unread = true;
      lines.push({ key: "unread", kind: "unread" });
    }
    if (row.kind === "message" && row.message.author === "assistant") assistant = row.message.name;
    const broken = lines.at(-1)?.kind !== "row";
    const first = broken || !sameGroup(shown[index - 1], row);
    const last = !shown[index + 1] || !sameGroup(row, shown[index + 1]);
    const trace = row.kind === "message" ? traceOf(traces, row.message) : null;
    lines.push({ key: keyOf(row), kind: "row", row, first, last, cutBy: cutBy(shown, index), assistant, trace });
  });
  return lines;
}

/**
 * Who speaks in a row; null for a line of the system.
 * @param {Row|undefined} row
 */
export function speakerOf(row) {
  if (row?.kind === "message") return row.message.author;
  if (row?.kind === "live") return "assistant";
  return row?.kind === "pending" ? "agent" : null;
}

/** @param {Row} row */
function keyOf(row) {
  if (row.kind === "pending") return `pending ${row.pending.id}`;
  // The live text and the message that replaces it stand at one place, and are one node.
  return `place ${row.place}`;
}

/**
 * @param {Row} row
 * @param {readonly Line[]} before
 * @returns {number}
 */
function timeOf(row, before) {
  if (row.kind === "pending") return row.pending.at;
  if (row.kind !== "live") return row.at;
  const last = before.at(-1);
  return last?.kind === "row" ? timeOf(last.row, []) : 0;
}

/**
 * @param {Row|undefined} a
 * @param {Row|undefined} b
 */
function sameGroup(a, b) {
  if (!a || !b || speakerOf(a) === null || speakerOf(a) !== speakerOf(b)) return false;
  if (
    speakerOf(a) === "assistant" ||
    (a.kind === "message" && b.kind === "message" && a.message.name !== b.message.name)
  )
    return false;
  return b.kind === "live" || timeOf(b, []) - timeOf(a, []) < GROUP_MS;
}

/**
 * @param {Row} row
 * @param {number} readUpTo
 */
function isNewToAgent(row, readUpTo) {
  return row.kind === "message" && row.message.author === "customer" && row.place > readUpTo;
}

/**
 * @param {readonly Row[]} shown
 * @param {number} index
 */
function cutBy(shown, index) {
  const row = shown[index];
  if (row.kind !== "message" || row.message.state !== "taken_over") return "";
  for (const next of shown.slice(index + 1))
    if (next.kind === "owner" && next.owner.kind === "agent") return next.owner.name;
  return "";
}
