// @ts-check
// One conversation as a pure function of its frames: what is shown is the same however the frames arrived.
// No DOM, no network, no clock. The caller asks for what gap() names, about 100 ms after it appeared.

import { acting, ended, hasMessageAt, quiet, relived, started, streamed } from "./live.js";

/** @typedef {import("./frames.js").ServerFrame} ServerFrame */
/** @typedef {import("./frames.js").EventFrame} EventFrame */
/** @typedef {import("./frames.js").DeltaFrame} DeltaFrame */
/** @typedef {import("./frames.js").Message} Message */
/** @typedef {import("./frames.js").Owner} Owner */
/** @typedef {import("./frames.js").Page} Page */
/** @typedef {import("./frames.js").LiveTurn} LiveTurn */
/** @typedef {import("./frames.js").Availability} Availability */
/** @typedef {import("./frames.js").TurnEndedFrame["end"]} TurnEnd */
/**
 * What stands at a place. `version` is the number of the event (or page) it was last taken from.
 * @typedef {{place: number, version: number, at: number} & (
 *   {kind: "message", message: Message} | {kind: "removed"} | {kind: "turn", turn: string, part: number}
 *   | {kind: "owner", owner: Owner} | {kind: "status", status: string} | {kind: "contact"}
 * )} Item
 */
/** The turn in progress. `ended` says how it ended while its message is still on the way.
 * @typedef {LiveTurn & {ended: TurnEnd | null}} Live */
/**
 * A message of ours that the conversation does not hold yet. `sent` means stored (acknowledged).
 * @typedef {{id: string, text: string, at: number, state: "sending" | "sent" | "failed", seq: number | null,
 *   error: string | null}} Pending
 */
/**
 * @typedef {object} Timeline
 * @property {string} id
 * @property {string | null} epoch  null until a first page came
 * @property {number} seq  every event up to this one is applied
 * @property {number | null} oldest  the first event we hold; ask `before` it for older ones
 * @property {boolean} earlier  older pages exist
 * @property {readonly Item[]} items  by place
 * @property {Owner} owner
 * @property {number} ownerSeq
 * @property {string} status
 * @property {number} statusSeq
 * @property {Live | null} live
 * @property {readonly {handle: number, place: number | null}[]} ended  handles that say no more; a handle may be
 *   used again by a turn at a later place
 * @property {readonly DeltaFrame[]} heldDeltas  beyond a hole in the live text, or of a turn not yet known
 * @property {readonly EventFrame[]} heldEvents  beyond a hole in the numbers
 * @property {readonly Pending[]} pending
 * @property {number | null} queuePosition
 * @property {Availability | null} availability
 * @property {{author: string, name: string} | null} typing
 */
/** What to draw, top to bottom.
 * @typedef {Item | {kind: "live", place: number, live: Live} | {kind: "pending", pending: Pending}} Row */

const HELD_LIMIT = 1000;

/** @param {string} id @returns {Timeline} */
export function empty(id) {
  return {
    id, epoch: null, seq: 0, oldest: null, earlier: false, items: [],
    owner: { kind: "assistant", name: "", agent: null, reason: "", team: null, version: 0 }, ownerSeq: 0,
    status: "open", statusSeq: 0, live: null, ended: [], heldDeltas: [], heldEvents: [], pending: [],
    queuePosition: null, availability: null, typing: null,
  };
}

/**
 * The state after a frame. Frames of other conversations and of no concern change nothing.
 * @param {Timeline} state
 * @param {ServerFrame} frame
 * @returns {Timeline}
 */
export function reduce(state, frame) {
  if (conversationOf(frame) !== null && conversationOf(frame) !== state.id) return state;
  switch (frame.type) {
    case "welcome": return welcomed(state, frame);
    case "watching": return joined(state, frame.page, frame.live, frame.row.owner, frame.row.status);
    case "history": return remembered(state, frame);
    case "event": return settled(hold(heard(state, frame), frame));
    case "ack": return acknowledged(state, frame.id, frame.seq);
    case "refused": return frame.id === null ? state : failed(state, frame.id, frame.code);
    case "turn.started": return started(state, frame);
    case "turn.activity": return acting(state, frame.handle, frame.activity, frame.subject);
    case "delta": return streamed(state, frame);
    case "turn.ended": return ended(state, frame.handle, frame.end, frame.length);
    case "typing": return { ...state, typing: frame.on ? { author: frame.author, name: frame.name } : null };
    case "queue": return { ...state, queuePosition: frame.position, availability: frame.availability };
    default: return state;
  }
}

/**
 * What is missing, as the fields of history.fetch; null when nothing is known to be.
 * @param {Timeline} state
 * @returns {{conversation: string, after: number} | null}
 */
export function gap(state) {
  if (state.epoch === null) return null;
  const stored = state.pending.some((message) => message.seq !== null && message.seq > state.seq);
  const missing = state.heldEvents.length > 0 || state.heldDeltas.length > 0 || stored || state.live?.ended;
  return missing ? { conversation: state.id, after: state.seq } : null;
}

/**
 * What to draw, top to bottom: items, the live text at its place, our own unstored messages last.
 * @param {Timeline} state
 * @returns {Row[]}
 */
export function rows(state) {
  /** @type {Row[]} */
  const shown = state.items.filter((item) => item.kind !== "turn" && item.kind !== "removed");
  const { live } = state;
  if (live !== null) {
    const index = shown.findIndex((row) => "place" in row && row.place > live.place);
    shown.splice(index < 0 ? shown.length : index, 0, { kind: "live", place: live.place, live });
  }
  return shown.concat(state.pending.map((pending) => ({ kind: "pending", pending })));
}

/** A message about to be sent. @param {Timeline} state @param {{id: string, text: string, at: number}} message @returns {Timeline} */
export function compose(state, { id, text, at }) {
  if (state.pending.some((other) => other.id === id) || holdsClientId(state, id)) return state;
  return { ...state, pending: [...state.pending, { id, text, at, state: "sending", seq: null, error: null }] };
}

/** @param {Timeline} state @param {string} id @returns {Timeline} */
export function retry(state, id) {
  return changed(state, id, { state: "sending", error: null });
}

/** @param {Timeline} state @param {string} id @returns {Timeline} */
export function discard(state, id) {
  return { ...state, pending: state.pending.filter((message) => message.id !== id) };
}

/** Not stored and not on its way. A stored one stays stored. @param {Timeline} state @param {string} id @param {string} error @returns {Timeline} */
export function failed(state, id, error) {
  const known = state.pending.find((message) => message.id === id);
  return known && known.seq === null ? changed(state, id, { state: "failed", error }) : state;
}

/** @param {Timeline} state @param {string} id @param {number} seq @returns {Timeline} */
function acknowledged(state, id, seq) {
  return reconciled(changed(state, id, { state: "sent", seq, error: null }));
}

/** @param {Timeline} state @param {string} id @param {Partial<Pending>} change @returns {Timeline} */
function changed(state, id, change) {
  if (!state.pending.some((message) => message.id === id)) return state;
  return { ...state, pending: state.pending.map((message) => (message.id === id ? { ...message, ...change } : message)) };
}

/** @param {Timeline} state @param {string} id */
function holdsClientId(state, id) {
  return state.items.some((item) => item.kind === "message" && item.message.client_id === id);
}

/** @param {Timeline} state @param {import("./frames.js").WelcomeFrame} frame @returns {Timeline} */
function welcomed(state, frame) {
  const next = joined(state, frame.page, frame.live, frame.owner, frame.status);
  return { ...next, availability: frame.availability, queuePosition: frame.queue_position };
}

/**
 * @param {Timeline} state @param {Page} page @param {LiveTurn | null} live @param {Owner} owner @param {string} status
 * @returns {Timeline}
 */
function joined(state, page, live, owner, status) {
  let next = { ...newest(state, page), ended: [] };
  if (page.upto >= next.ownerSeq) next = { ...next, owner, ownerSeq: page.upto };
  if (page.upto >= next.statusSeq) next = { ...next, status, statusSeq: page.upto };
  return settled(relived(next, live, page.upto));
}

/** @param {Timeline} state @param {import("./frames.js").HistoryFrame} frame @returns {Timeline} */
function remembered(state, frame) {
  const { page, after, before } = frame;
  if (page.epoch !== state.epoch) return state;
  if (before !== null) {
    const empties = page.events.length === 0;
    return { ...merged(state, page), earlier: page.earlier && !empties, oldest: oldestEvent(page, state.oldest) };
  }
  if (after === null || after > state.seq) return state;
  return settled(relived(newest(state, page), frame.live, page.upto));
}

/**
 * With a page that continues what we hold, or instead of it where the page stands alone and knows more.
 * @param {Timeline} state @param {Page} page
 * @returns {Timeline}
 */
function newest(state, page) {
  const known = state.epoch === page.epoch;
  const keeps = known && ((page.after !== null && page.after <= state.seq) || state.seq >= page.upto);
  if (keeps) return { ...merged(state, page), seq: Math.max(state.seq, page.upto) };
  const next = merged(known ? { ...state, items: [] } : anew(state), page);
  return { ...next, epoch: page.epoch, seq: page.upto, earlier: page.earlier, oldest: oldestEvent(page, null) };
}

/** What came before the first page is counted as it is; what came in another numbering means nothing in this one. @param {Timeline} state @returns {Timeline} */
function anew({ id, epoch, pending, heldEvents, heldDeltas }) {
  return epoch === null ? { ...empty(id), pending, heldEvents, heldDeltas } : { ...empty(id), pending };
}

/** Every event of the page, where what we hold is not newer. @param {Timeline} state @param {Page} page @returns {Timeline} */
function merged(state, page) {
  return page.events.reduce((next, event) => applied(next, event, page.upto), state);
}

/** @param {Page} page @param {number | null} known */
function oldestEvent(page, known) {
  const numbers = page.events.map((event) => event.seq);
  if (known !== null) numbers.push(known);
  return numbers.length === 0 ? null : Math.min(...numbers);
}

/** Who has said it no longer types it. @param {Timeline} state @param {EventFrame} event @returns {Timeline} */
function heard(state, event) {
  return state.typing && event.message?.author === state.typing.author ? { ...state, typing: null } : state;
}

/** @param {Timeline} state @param {EventFrame} event @returns {Timeline} */
function hold(state, event) {
  if (event.seq <= state.seq && state.epoch !== null) return state;
  const { heldEvents } = state;
  if (heldEvents.length >= HELD_LIMIT || heldEvents.some((held) => held.seq === event.seq)) return state;
  return { ...state, heldEvents: [...heldEvents, event].sort((a, b) => a.seq - b.seq) };
}

/** Applies what is held and now follows without a hole. @param {Timeline} state @returns {Timeline} */
function settled(state) {
  if (state.epoch === null) return state;
  let next = state;
  let index = 0;
  for (const event of state.heldEvents) {
    if (event.seq > next.seq + 1) break;
    if (event.seq === next.seq + 1) next = { ...applied(next, event, event.seq), seq: event.seq };
    index += 1;
  }
  next = index === 0 ? next : { ...next, heldEvents: next.heldEvents.slice(index) };
  return reconciled(next);
}

/** @param {Timeline} state @param {EventFrame} event @param {number} version @returns {Timeline} */
function applied(state, event, version) {
  const item = itemOf(event, version);
  const next = item === null ? state : placed(state, item);
  if (event.owner !== null && event.kind === "owner" && event.seq > state.ownerSeq) {
    return { ...next, owner: event.owner, ownerSeq: event.seq, queuePosition: event.owner.kind === "queue" ? next.queuePosition : null };
  }
  if (event.status !== null && event.kind === "status" && event.seq > state.statusSeq) {
    return { ...next, status: event.status, statusSeq: event.seq };
  }
  return next;
}

/** @param {EventFrame} event @param {number} version @returns {Item | null} */
function itemOf(event, version) {
  const { message, at } = event;
  const place = message?.place ?? event.seq;
  switch (event.kind) {
    case "message": case "message_removed":
      if (message === null) return null;
      if (message.state === "removed" || event.kind === "message_removed") return { kind: "removed", place, version, at };
      return { kind: "message", place, version, at: message.at, message };
    case "turn_opened": return { kind: "turn", place, version, at, turn: event.turn ?? "", part: event.part ?? 0 };
    case "owner": return event.owner && { kind: "owner", place, version, at, owner: event.owner };
    case "status": return event.status === null ? null : { kind: "status", place, version, at, status: event.status };
    case "contact": return { kind: "contact", place, version, at };
    default: return null;
  }
}

/** @param {Timeline} state @param {Item} item @returns {Timeline} */
function placed(state, item) {
  const { items } = state;
  let index = items.length;
  while (index > 0 && /** @type {Item} */ (items[index - 1]).place > item.place) index -= 1;
  const there = items[index - 1];
  if (there === undefined || there.place !== item.place) {
    return { ...state, items: [...items.slice(0, index), item, ...items.slice(index)] };
  }
  // An opened turn never covers its own message; an older page never covers what is newer.
  if (item.kind === "turn" ? there.kind !== "turn" : there.kind !== "turn" && there.version > item.version) return state;
  return { ...state, items: [...items.slice(0, index - 1), item, ...items.slice(index)] };
}

/** Drops what has become durable: our stored messages, the text of a turn whose message came. @param {Timeline} state @returns {Timeline} */
function reconciled(state) {
  let next = state;
  if (state.pending.some((message) => isStored(state, message))) {
    next = { ...next, pending: next.pending.filter((message) => !isStored(state, message)) };
  }
  const { live } = next;
  if (live !== null && hasMessageAt(next, live.place)) next = quiet(next, live.handle);
  return next;
}

/** @param {Timeline} state @param {Pending} message */
function isStored(state, message) {
  return (message.seq !== null && message.seq <= state.seq) || holdsClientId(state, message.id);
}

/** @param {ServerFrame} frame @returns {string | null} */
function conversationOf(frame) {
  switch (frame.type) {
    case "history": return frame.page.conversation;
    case "watching": return frame.row.conversation;
    default: return "conversation" in frame ? frame.conversation : null;
  }
}
