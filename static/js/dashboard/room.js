// @ts-check
/** One conversation as an agent sees it: its timeline and what stands beside it. Pure. */

import { passes_ms } from "../wire/frames.js";
import { empty, reduce } from "../wire/timeline.js";
import { withTraces } from "./traces.js";

/** @typedef {import("../wire/frames.js").ServerFrame} ServerFrame */
/** @typedef {import("../wire/frames.js").Panel} Panel */
/** @typedef {import("../wire/frames.js").Stage} Stage */
/** @typedef {import("../wire/timeline.js").Timeline} Timeline */
/**
 * @typedef {object} Room
 * @property {string} id
 * @property {"loading"|"ready"|"failed"} phase
 * @property {string|null} error code of the refusal
 * @property {number|null} readUpTo places beyond it are new to the agent; null draws no line
 * @property {Timeline} timeline
 * @property {Panel|null} panel
 * @property {readonly Stage[]} stages of the last turn
 * @property {Readonly<Record<string, string>>} marks what was warm in it
 * @property {import("./traces.js").Traces} traces of every answer, as far as they are known
 */

const ROOMS_KEPT = 20;

/**
 * @param {string} id
 * @param {number|null} [readUpTo]
 * @returns {Room}
 */
export function emptyRoom(id, readUpTo = null) {
  const timeline = empty(id);
  return { id, phase: "loading", error: null, readUpTo, timeline, panel: null, stages: [], marks: {}, traces: new Map() };
}

/**
 * @param {Room} room
 * @param {ServerFrame} frame
 * @returns {Room} the same object when the frame is not about this conversation
 */
export function reduceRoom(room, frame) {
  const timeline = reduce(room.timeline, frame);
  const next = timeline === room.timeline ? room : { ...room, timeline };
  switch (frame.type) {
    case "watching":
      if (frame.row.conversation !== room.id) return next;
      return { ...next, phase: "ready", error: null, panel: frame.panel, ...lastAnswer(room, frame) };
    case "waterfall":
      if (frame.conversation !== room.id) return next;
      return { ...next, stages: frame.stages, marks: frame.marks, traces: withTraces(room.traces, [frame]) };
    case "panel":
      return frame.conversation === room.id ? { ...next, panel: frame.panel } : next;
    case "refused":
      if (frame.of !== "conversation.watch" || frame.conversation !== room.id || passes_ms(frame) !== null) return next;
      return { ...next, phase: "failed", error: frame.code };
    default:
      return next;
  }
}

/**
 * @param {Room} room
 * @param {import("../wire/frames.js").WatchingFrame} frame
 */
function lastAnswer({ traces }, { stages, marks, turn, part, painted_ms, added_ms }) {
  if (turn === null) return { stages, marks };
  return { stages, marks, traces: withTraces(traces, [{ turn, part: part ?? 1, stages, marks, painted_ms, added_ms }]) };
}

/**
 * What the agent may do now. Nobody takes a conversation out of a colleague's hands.
 * @param {Room} room
 * @param {string|null} me
 * @returns {{ take: boolean, hand_back: boolean, resolve: boolean, reopen: boolean, write: boolean }}
 */
export function allowed(room, me) {
  const { status, owner } = room.timeline;
  const open = room.phase === "ready" && status === "open";
  const mine = open && owner.kind === "agent" && owner.agent === me;
  return {
    take: open && owner.kind !== "agent",
    hand_back: mine,
    resolve: mine || (open && owner.kind !== "agent"),
    reopen: room.phase === "ready" && status === "resolved",
    write: mine,
  };
}

/**
 * Every room that is kept, after a frame.
 * @param {ReadonlyMap<string, Room>} rooms
 * @param {ServerFrame} frame
 * @returns {ReadonlyMap<string, Room>} the same object when nothing changed
 */
export function reduceRooms(rooms, frame) {
  const next = new Map(rooms);
  let changed = false;
  for (const [id, room] of rooms) {
    const after = reduceRoom(room, frame);
    changed ||= after !== room;
    next.set(id, after);
  }
  return changed ? next : rooms;
}

/**
 * The rooms with `room` as the latest; the oldest without unsent messages go.
 * @param {ReadonlyMap<string, Room>} rooms
 * @param {Room} room
 */
export function keepRoom(rooms, room) {
  const next = new Map(rooms);
  next.delete(room.id);
  next.set(room.id, room);
  for (const [id, old] of next) {
    if (next.size <= ROOMS_KEPT) break;
    if (old.timeline.pending.length === 0) next.delete(id);
  }
  return next;
}
