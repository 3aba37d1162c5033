// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { layout, unreadCount } from "../../static/js/widget/layout.js";
import { Reading } from "../../static/js/widget/reading.js";
import { Keep } from "../../static/js/widget/storage.js";
import { decode } from "../../static/js/wire/frames.js";
import * as timeline from "../../static/js/wire/timeline.js";
import { welcome } from "./socket.js";
import { storage } from "./storage.js";

const MINUTE = 60_000;
const NOON = new Date(2026, 2, 5, 12).getTime();
const DAY = 24 * 60 * MINUTE;

/** @param {...object} frames */
const lineOf = (...frames) => [welcome(), ...frames].reduce(
  (/** @type {timeline.Timeline} */ line, frame) => timeline.reduce(line, /** @type {any} */ (decode(JSON.stringify(frame)))), timeline.empty("c"),
);
/** @param {number} seq @param {string} kind @param {object} more */
const event = (seq, kind, more) => ({ type: "event", conversation: "c", seq, kind, at: NOON + seq, ...more });
/** @param {number} seq @param {string} author @param {object} [more] */
const said = (seq, author, more = {}) => event(seq, "message", {
  message: { id: `m${seq}`, place: seq, author, name: "", text: `text ${seq}`, at: NOON + seq, ...more },
});
/** @param {number} seq @param {object} owner */
const owned = (seq, owner) => event(seq, "owner", { owner: { name: "", ...owner } });

/** @param {timeline.Timeline} line @param {number | null} [seen] */
const rowsOf = (line, seen = null) => layout(line, { assistantName: "Lumi", seen, now: NOON + 9 });
/** @param {timeline.Timeline} line @param {number | null} [seen] */
const shape = (line, seen = null) => rowsOf(line, seen).map((row) => {
  if (row.type === "bubble") return `${row.author} ${row.first ? "f" : "-"}${row.last ? "l" : "-"}`;
  return row.type === "system" ? row.word : row.type;
});
/** @param {timeline.Timeline} line */
const bubbles = (line) => /** @type {import("../../static/js/widget/layout.js").BubbleRow[]} */ (rowsOf(line).filter((row) => row.type === "bubble"));

test("messages of one author within five minutes stand together", () => {
  const line = lineOf(
    said(1, "customer"), said(2, "customer"), said(3, "assistant"), said(4, "assistant", { at: NOON + 5 * MINUTE + 3 }),
    said(5, "agent", { name: "Kim", at: NOON + 6 * MINUTE }), said(6, "agent", { name: "Ana", at: NOON + 6 * MINUTE }),
  );
  assert.deepEqual(shape(line), ["day", "customer f-", "customer -l", "assistant fl", "assistant fl", "agent fl", "agent fl"]);
});

test("an answer that was cut short stands alone", () => {
  const line = lineOf(said(1, "assistant", { state: "stopped" }), said(2, "assistant"));
  assert.deepEqual(shape(line), ["day", "assistant fl", "assistant fl"]);
});

test("a day is told once, where it begins", () => {
  const line = lineOf(said(1, "customer", { at: NOON - DAY }), said(2, "customer", { at: NOON - DAY + 1 }), said(3, "customer"));
  assert.deepEqual(shape(line), ["day", "customer f-", "customer -l", "day", "customer fl"]);
  const keys = rowsOf(line).map((row) => row.key);
  assert.equal(new Set(keys).size, keys.length);
});

test("lines of the service and texts on their way have their day too", () => {
  const line = lineOf(event(1, "owner", { owner: { kind: "agent", name: "Kim" }, at: NOON - 2 * DAY }));
  assert.deepEqual(shape(timeline.compose(line, { id: "1", text: "late", at: NOON - DAY })), ["day", "joined", "day", "customer fl"]);
  assert.deepEqual(rowsOf(line).flatMap((row) => (row.type === "day" ? [row.at] : [])), [NOON - 2 * DAY]);
});

test("the unread line stands before the first message of others that was not seen", () => {
  const line = lineOf(said(1, "assistant"), said(2, "customer"), said(3, "agent", { name: "Kim" }), said(4, "agent", { name: "Kim" }));
  assert.deepEqual(shape(line, 1), ["day", "assistant fl", "customer fl", "unread", "agent f-", "agent -l"]);
  assert.deepEqual(shape(line, 4), shape(line));
  assert.equal(unreadCount(line, 1), 2);
  assert.equal(unreadCount(line, 4), 0);
});

test("what happens to a conversation is told in lines", () => {
  const line = lineOf(
    owned(1, { kind: "queue", reason: "button" }), event(2, "contact", {}), owned(3, { kind: "agent", name: "Kim" }),
    owned(4, { kind: "assistant", reason: "agent" }), owned(5, { kind: "queue", reason: "rule" }), event(6, "status", { status: "resolved" }),
    event(7, "status", { status: "open" }),
  );
  assert.deepEqual(shape(line), ["day", "asked_for_human", "contact_left", "joined", "handed_back", "handing_over", "resolved", "reopened"]);
  const named = rowsOf(line).flatMap((row) => (row.type === "system" && row.values.name ? [[row.word, row.values.name]] : []));
  assert.deepEqual(named, [["joined", "Kim"], ["handed_back", "Kim"]]);
});

test("the assistant's return after nobody is not told", () => {
  assert.deepEqual(shape(lineOf(owned(1, { kind: "assistant", reason: "agent" }))), []);
  assert.deepEqual(shape(lineOf(owned(1, { kind: "agent", name: "Kim" }), owned(2, { kind: "assistant", reason: "timeout" }))), ["day", "joined"]);
});

test("a cut answer names who took over, and only the next one who did", () => {
  const line = lineOf(
    said(1, "assistant", { state: "taken_over" }), owned(2, { kind: "agent", name: "Kim" }), owned(3, { kind: "agent", name: "Ana" }), said(4, "assistant"),
  );
  assert.deepEqual(bubbles(line).map(({ cutBy }) => cutBy), ["Kim", ""]);
  const second = lineOf(
    owned(1, { kind: "agent", name: "Kim" }), owned(2, { kind: "assistant", reason: "agent" }), said(3, "assistant", { state: "taken_over" }),
    owned(4, { kind: "queue", reason: "button" }), owned(5, { kind: "agent", name: "Ana" }),
  );
  assert.deepEqual(bubbles(second).map(({ cutBy }) => cutBy), ["Ana"]);
  assert.deepEqual(bubbles(lineOf(said(1, "assistant", { state: "taken_over" }))).map(({ cutBy }) => cutBy), [""]);
});

test("authors without a name have the assistant's, or none", () => {
  const line = lineOf(said(1, "assistant"), said(2, "assistant", { name: "Old name" }), said(3, "agent"));
  assert.deepEqual(bubbles(line).map(({ name }) => name), ["Lumi", "Old name", ""]);
});

test("our message keeps its key and says what became of it, the last one only", () => {
  const mine = { id: "c-1", text: "hello", at: NOON };
  const sending = timeline.compose(lineOf(), mine);
  assert.deepEqual(bubbles(sending).map(({ key, delivery, id, text }) => [key, delivery, id, text]), [["cc-1", "sending", "c-1", "hello"]]);
  const failed = timeline.failed(sending, "c-1", "too_long");
  assert.deepEqual(bubbles(failed).map(({ delivery, error }) => [delivery, error]), [["failed", "too_long"]]);
  const stored = lineOf(said(1, "customer", { client_id: "c-1" }));
  assert.deepEqual(bubbles(stored).map(({ key, delivery, id }) => [key, delivery, id]), [["cc-1", "sent", null]]);
  const answered = lineOf(said(1, "customer"), said(2, "customer"), said(3, "assistant"));
  assert.deepEqual(bubbles(answered).map(({ delivery }) => delivery), ["", "", ""]);
  assert.deepEqual(bubbles(lineOf(said(1, "customer"), said(2, "customer"))).map(({ delivery }) => delivery), ["", "sent"]);
});

test("an answer keeps its key from its first word to its last", () => {
  const started = [
    event(1, "turn_opened", { turn: "u", part: 1 }),
    { type: "turn.started", conversation: "c", turn: "u", part: 1, handle: 1, place: 1 }, { type: "delta", handle: 1, offset: 0, text: "Ans" },
  ];
  const live = lineOf(...started);
  assert.deepEqual(bubbles(live).map(({ key, author, name, text, live: turn }) => [key, author, name, text, turn?.turn]), [["p1", "assistant", "Lumi", "Ans", "u"]]);
  const whole = lineOf(...started, said(2, "assistant", { place: 1, text: "Answer", turn: "u", part: 1, sources: [{ title: "T", url: "" }] }));
  assert.deepEqual(bubbles(whole).map(({ key, text, live: turn, sources }) => [key, text, turn, sources.length]), [["p1", "Answer", null, 1]]);
});

test("only an agent's typing is shown, last of all", () => {
  const line = lineOf(said(1, "customer"), { type: "typing", conversation: "c", author: "agent", name: "Kim" });
  assert.deepEqual(rowsOf(line).at(-1), { type: "typing", key: "typing", name: "Kim" });
  assert.deepEqual(shape(lineOf({ type: "typing", conversation: "c", author: "customer", name: "" })), []);
});

test("what came while nobody looked is counted and marked, until somebody looks, in every tab", () => {
  const browser = storage();
  const tab = () => new Reading(new Keep("site:", () => browser));
  const reading = tab();
  const first = lineOf(said(1, "assistant"));
  reading.begin(first);
  assert.equal(reading.unread(first), 0);
  reading.look(first);
  const later = lineOf(said(1, "assistant"), said(2, "agent", { name: "Kim" }), said(3, "customer"), said(4, "agent", { name: "Kim" }));
  assert.equal(reading.unread(later), 2);
  reading.miss(later);
  assert.equal(reading.mark, 1);
  reading.look(lineOf(said(1, "assistant"), said(2, "agent")));
  reading.miss(later);
  assert.equal(reading.mark, 1);
  reading.look(later);
  assert.equal(reading.unread(later), 0);
  assert.equal(reading.mark, 1);
  const other = tab();
  other.begin(later);
  assert.deepEqual([other.unread(later), other.mark], [0, null]);
  // An older view of the conversation does not make it unread again.
  other.look(first);
  assert.equal(reading.unread(later), 0);
});

test("a conversation that comes back with news begins with its mark", () => {
  const reading = new Reading(new Keep("site:", () => /** @type {any} */ (kept)));
  const kept = storage();
  reading.look(lineOf(said(1, "assistant")));
  reading.begin(lineOf(said(1, "assistant"), said(2, "assistant")));
  assert.equal(reading.mark, 1);
  reading.begin(timeline.empty("another"));
  assert.equal(reading.mark, null);
});

test("before the first page nothing was seen", () => {
  const kept = storage();
  new Reading(new Keep("site:", () => kept)).look(timeline.empty("c"));
  assert.equal(kept.kept.size, 0);
});
