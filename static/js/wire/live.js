// @ts-check
// The live turn of a timeline: its text grows by deltas, waits over holes, and gives way to its stored message. Pure.

/** @typedef {import("./timeline.js").Timeline} Timeline */
/** @typedef {import("./frames.js").DeltaFrame} DeltaFrame */
/** @typedef {import("./frames.js").LiveTurn} LiveTurn */
/** @typedef {import("./frames.js").TurnEndedFrame["end"]} TurnEnd */

const HELD_LIMIT = 1000;
const ENDED_LIMIT = 16;

/** @param {Timeline} state @param {import("./frames.js").TurnStartedFrame} frame @returns {Timeline} */
export function started(state, { turn, part, handle, place }) {
  const same = state.live?.handle === handle && state.live.turn === turn && state.live.part === part;
  const before = state.ended.find((one) => one.handle === handle);
  const over = before !== undefined && (before.place === null || before.place >= place);
  if (same || over || hasMessageAt(state, place) || (state.live && state.live.place > place)) return state;
  const next = reopened(state.live === null ? state : quiet(state, state.live.handle), handle);
  return caughtUp({ ...next, live: { turn, part, handle, place, text: "", activity: "", subject: "", ended: null } });
}

/** @param {Timeline} state @param {number} handle @param {string} activity @param {string} subject @returns {Timeline} */
export function acting(state, handle, activity, subject) {
  return state.live?.handle === handle ? { ...state, live: { ...state.live, activity, subject } } : state;
}

/** @param {Timeline} state @param {DeltaFrame} delta @returns {Timeline} */
export function streamed(state, delta) {
  const { live } = state;
  const over = live?.handle === delta.handle ? live.ended : state.ended.some((one) => one.handle === delta.handle);
  if (over) return state;
  if (live?.handle === delta.handle && delta.offset <= live.text.length) {
    const text = extended(live.text, delta);
    return text === live.text ? state : caughtUp({ ...state, live: { ...live, text } });
  }
  if (state.heldDeltas.length >= HELD_LIMIT) return state;
  return { ...state, heldDeltas: [...state.heldDeltas, delta] };
}

/** @param {string} text @param {DeltaFrame} delta */
function extended(text, delta) {
  return text + delta.text.slice(text.length - delta.offset);
}

/** Joins held deltas that now follow. @param {Timeline} state @returns {Timeline} */
function caughtUp(state) {
  const { live } = state;
  if (live === null || state.heldDeltas.length === 0) return state;
  let { text } = live;
  const mine = state.heldDeltas.filter((delta) => delta.handle === live.handle).sort((a, b) => a.offset - b.offset);
  const beyond = mine.filter((delta) => {
    if (delta.offset > text.length) return true;
    text = extended(text, delta);
    return false;
  });
  const others = state.heldDeltas.filter((delta) => delta.handle !== live.handle);
  return { ...state, live: { ...live, text }, heldDeltas: [...others, ...beyond] };
}

/** @param {Timeline} state @param {number} handle @param {TurnEnd} end @param {number} length @returns {Timeline} */
export function ended(state, handle, end, length) {
  const { live } = state;
  if (live?.handle !== handle) return quiet(state, handle);
  if (length === 0 || hasMessageAt(state, live.place)) return quiet(state, handle);
  const heldDeltas = state.heldDeltas.filter((delta) => delta.handle !== handle);
  return { ...state, heldDeltas, live: { ...live, text: live.text.slice(0, length), ended: end } };
}

/** No more of this handle. @param {Timeline} state @param {number} handle @returns {Timeline} */
export function quiet(state, handle) {
  const mine = state.live?.handle === handle;
  const entry = { handle, place: mine && state.live ? state.live.place : null };
  return {
    ...state,
    ended: [...state.ended.filter((one) => one.handle !== handle), entry].slice(-ENDED_LIMIT),
    heldDeltas: state.heldDeltas.filter((delta) => delta.handle !== handle),
    live: mine ? null : state.live,
  };
}

/** @param {Timeline} state @param {number} handle @returns {Timeline} */
function reopened(state, handle) {
  return { ...state, ended: state.ended.filter((one) => one.handle !== handle) };
}

/**
 * The server's word on the live turn as of event `upto`. A turn that began later is not contradicted by null.
 * @param {Timeline} state @param {LiveTurn | null} told @param {number} upto
 * @returns {Timeline}
 */
export function relived(state, told, upto) {
  const { live } = state;
  if (live !== null && live.place > (told?.place ?? upto)) return state;
  if (told === null) return { ...(live === null ? state : quiet(state, live.handle)), heldDeltas: [] };
  if (hasMessageAt(state, told.place)) return state;
  const same = live !== null && live.turn === told.turn && live.part === told.part;
  if (same && live.ended) return state;
  const text = same && live.text.length > told.text.length ? live.text : told.text;
  const heldDeltas = state.heldDeltas.filter((delta) => delta.handle === told.handle);
  return caughtUp({ ...reopened(state, told.handle), heldDeltas, live: { ...told, text, ended: null } });
}

/** @param {Timeline} state @param {number} place */
export function hasMessageAt(state, place) {
  const item = state.items.find((one) => one.place === place);
  return item !== undefined && item.kind !== "turn";
}
