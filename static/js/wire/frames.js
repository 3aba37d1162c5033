// @ts-check
// The mirror of server_frames.py and protocol.py in apps/wire: what every server frame holds. No DOM, no network.
// tests/frames/*.json are read by both sides, so the two cannot drift apart. Shapes only agents get: dashboard/frames.js.

import { decode as decodeMsgpack } from "./msgpack.js";

export const SUBPROTOCOLS = ["chatsvc.v1.msgpack", "chatsvc.v1.json"];
export const TEXT_LIMIT = 8000;
/** A line that was welcomed and died sooner speaks against the way it took. */
export const YOUNG_MS = 10_000;
/** Closes that say nothing against it: the server's own, and those of the protocol. @param {number} code */
export const orderly = (code) => code === 1012 || code === 1013 || code >= 4000;

/** @typedef {"assistant" | "queue" | "agent"} OwnerKind */
/** @typedef {"complete" | "stopped" | "taken_over" | "interrupted" | "removed"} MessageState */
/** @typedef {{title: string, url: string}} Source */
/**
 * @typedef {object} Message
 * @property {string} id
 * @property {number} place
 * @property {"customer" | "assistant" | "agent"} author
 * @property {string} name
 * @property {string} text
 * @property {number} at
 * @property {MessageState} state
 * @property {string | null} client_id
 * @property {string | null} turn
 * @property {number | null} part
 * @property {Source[]} sources
 */
/** @typedef {{kind: OwnerKind, name: string, agent: string | null, reason: string, team: string | null, version: number}} Owner */
/** @typedef {{turn: string, part: number, handle: number, place: number, text: string, activity: string, subject: string}} LiveTurn */
/** @typedef {{id: string, status: string, last_line: string, at: number, owner: Owner}} Summary */
/** @typedef {{online: boolean, opens_at: number | null, hours: string[], timezone: string}} Availability */
/**
 * @typedef {object} OrderView
 * @property {string} number
 * @property {string} status
 * @property {string} placed_on
 * @property {string[]} items
 * @property {string} total
 * @property {string} carrier
 * @property {string} tracking
 * @property {string} eta
 */
/**
 * @typedef {object} Panel
 * @property {string} customer
 * @property {string} name
 * @property {boolean} verified
 * @property {string} email
 * @property {Record<string, string>} attributes
 * @property {OrderView[]} orders
 * @property {Summary[]} earlier
 * @property {"warm" | "cold" | "none" | "unavailable"} facts_state
 */
/**
 * @typedef {object} InboxRow
 * @property {string} conversation
 * @property {number} seq
 * @property {string} customer
 * @property {boolean} verified
 * @property {string} status
 * @property {Owner} owner
 * @property {string} last_line
 * @property {string} last_author
 * @property {number} at
 * @property {string} locale
 * @property {string} site
 * @property {number | null} waiting_since
 */
/** @typedef {{id: string, name: string, online: boolean, teams: string[]}} AgentView */
/** @typedef {{name: string, start_ms: number, ms: number}} Stage */
/**
 * @typedef {object} EventFrame
 * @property {"event"} type
 * @property {string} conversation
 * @property {number} seq
 * @property {"message" | "message_removed" | "turn_opened" | "owner" | "status" | "contact" | "hidden"} kind
 * @property {number} at
 * @property {Message | null} message
 * @property {Owner | null} owner
 * @property {string | null} status
 * @property {string | null} turn
 * @property {number | null} part
 */
/** @typedef {{conversation: string, epoch: string, upto: number, events: EventFrame[], earlier: boolean, after: number | null}} Page */
/** @typedef {{type: "delta", handle: number, offset: number, text: string, conversation: string | null}} DeltaFrame */
/** @typedef {{type: "pong", heartbeat_s: number | null}} PongFrame */
/** @typedef {{type: "ack", id: string, seq: number, conversation: string, at: number}} AckFrame */
/**
 * @typedef {object} RefusedFrame
 * @property {"refused"} type
 * @property {string} code
 * @property {string} message
 * @property {string | null} id
 * @property {string | null} of
 * @property {number | null} retry_after_s
 * @property {string | null} conversation
 */
/** @typedef {{type: "turn.started", conversation: string, turn: string, part: number, handle: number, place: number}} TurnStartedFrame */
/** @typedef {{type: "turn.activity", handle: number, activity: string, subject: string, conversation: string | null}} ActivityFrame */
/**
 * @typedef {object} TurnEndedFrame
 * @property {"turn.ended"} type
 * @property {number} handle
 * @property {"finished" | "stopped" | "superseded" | "taken_over" | "interrupted" | "failed"} end
 * @property {string | null} conversation
 * @property {number} length
 */
/** @typedef {{type: "typing", conversation: string, author: string, name: string, on: boolean}} TypingFrame */
/** @typedef {{type: "queue", conversation: string, position: number, availability: Availability}} QueueFrame */
/**
 * @typedef {object} WelcomeFrame
 * @property {"welcome"} type
 * @property {string} conversation
 * @property {string} customer
 * @property {string} name
 * @property {boolean} verified
 * @property {string} status
 * @property {Owner} owner
 * @property {Page} page
 * @property {boolean} assistant
 * @property {Availability} availability
 * @property {number} heartbeat_s
 * @property {number} now
 * @property {LiveTurn | null} live
 * @property {number | null} queue_position
 * @property {boolean} contact
 */
/** @typedef {{type: "history", page: Page, after: number | null, before: number | null, live: LiveTurn | null}} HistoryFrame */
/** @typedef {{type: "conversations", items: Summary[]}} ConversationsFrame */
/**
 * @typedef {object} InboxFrame
 * @property {"inbox"} type
 * @property {AgentView} me
 * @property {InboxRow[]} rows
 * @property {AgentView[]} agents
 * @property {number} heartbeat_s
 * @property {number} now
 */
/** @typedef {{type: "inbox.row", row: InboxRow}} InboxRowFrame */
/**
 * @typedef {object} WatchingFrame
 * @property {"watching"} type
 * @property {InboxRow} row
 * @property {Page} page
 * @property {Panel} panel
 * @property {LiveTurn | null} live
 * @property {Stage[]} stages
 * @property {Record<string, string>} marks
 * @property {string | null} turn
 * @property {number | null} part
 * @property {number | null} painted_ms
 * @property {number | null} added_ms
 */
/** @typedef {{type: "waterfall", conversation: string, turn: string, stages: Stage[], marks: Record<string, string>, part: number, painted_ms: number | null, added_ms: number | null}} WaterfallFrame */
/** @typedef {{type: "presence", agents: AgentView[]}} PresenceFrame */
/** @typedef {{type: "panel", conversation: string, panel: Panel}} PanelFrame */
/**
 * @typedef {EventFrame | DeltaFrame | PongFrame | AckFrame | RefusedFrame | TurnStartedFrame | ActivityFrame
 *   | TurnEndedFrame | TypingFrame | QueueFrame | WelcomeFrame | HistoryFrame | ConversationsFrame | InboxFrame
 *   | InboxRowFrame | WatchingFrame | WaterfallFrame | PresenceFrame | PanelFrame} ServerFrame
 */

// A shape is a list of fields in the order of the server's struct. A field is its name, or
// [name, default], or [name, default, shape of its value or of its items]. No default: always sent.
/** @typedef {string | [string, unknown, Shape?]} Field */
/** @typedef {readonly Field[]} Shape */
/** Code → type and shape. Numbers are never reused. @typedef {ReadonlyMap<number, readonly [string, Shape]>} Table */
/** @typedef {(data: string | ArrayBuffer | Uint8Array) => ServerFrame | null} Decode */

export const NEEDED = Symbol("always sent");

/** @type {Shape} */
const source = ["title", ["url", ""]];
/** @type {Shape} */
const message = [
  "id", "place", "author", "name", "text", "at", ["state", "complete"], ["client_id", null], ["turn", null],
  ["part", null], ["sources", [], source],
];
/** @type {Shape} */
export const owner = ["kind", ["name", ""], ["agent", null], ["reason", ""], ["team", null], ["version", 0]];
/** @type {Shape} */
export const live = ["turn", "part", "handle", "place", ["text", ""], ["activity", ""], ["subject", ""]];
/** @type {Shape} */
export const summary = ["id", "status", "last_line", "at", ["owner", NEEDED, owner]];
/** @type {Shape} */
const availability = ["online", ["opens_at", null], ["hours", []], ["timezone", "UTC"]];
/** @type {Shape} */
const event = [
  "conversation", "seq", "kind", "at", ["message", null, message], ["owner", null, owner], ["status", null],
  ["turn", null], ["part", null],
];
/** @type {Shape} */
export const page = [
  "conversation", "epoch", "upto", ["events", NEEDED, [["type", "event"], ...event]],
  ["earlier", false], ["after", null],
];

/** What a customer's socket brings; an agent's brings more. @type {Table} */
export const TABLE = new Map([
  [1, ["event", event]],
  [2, ["delta", ["handle", "offset", "text", ["conversation", null]]]],
  [3, ["pong", [["heartbeat_s", null]]]],
  [4, ["ack", ["id", "seq", "conversation", "at"]]],
  [5, ["refused", ["code", "message", ["id", null], ["of", null], ["retry_after_s", null], ["conversation", null]]]],
  [6, ["turn.started", ["conversation", "turn", "part", "handle", "place"]]],
  [7, ["turn.activity", ["handle", "activity", ["subject", ""], ["conversation", null]]]],
  [8, ["turn.ended", ["handle", "end", ["conversation", null], ["length", 0]]]],
  [9, ["typing", ["conversation", "author", ["name", ""], ["on", true]]]],
  [10, ["queue", ["conversation", "position", ["availability", NEEDED, availability]]]],
  [11, ["welcome", [
    "conversation", "customer", "name", "verified", "status", ["owner", NEEDED, owner], ["page", NEEDED, page],
    "assistant", ["availability", NEEDED, availability], "heartbeat_s", "now", ["live", null, live],
    ["queue_position", null], ["contact", false],
  ]]],
  [12, ["history", [["page", NEEDED, page], ["after", null], ["before", null], ["live", null, live]]]],
  [13, ["conversations", [["items", NEEDED, summary]]]],
]);

/**
 * Reads frames of this table: what came over the socket with every field present; null for a frame it does not know.
 * Text is JSON, binary is MessagePack; data that is neither throws.
 * @param {Table} table
 * @returns {Decode}
 */
export function decoder(table) {
  const shapes = new Map(table.values());
  return (data) => {
    if (typeof data === "string") {
      const frame = JSON.parse(data);
      return framed(frame.type, shapes.get(frame.type), frame);
    }
    const [code, ...values] = /** @type {unknown[]} */ (decodeMsgpack(data));
    const [type, shape] = table.get(/** @type {number} */ (code)) ?? [""];
    return framed(type, shape, Object.fromEntries((shape ?? []).map((field, index) => [nameOf(field), values[index]])));
  };
}

export const decode = decoder(TABLE);

/** @param {string} type @param {Shape | undefined} shape @param {Record<string, unknown>} given @returns {ServerFrame | null} */
function framed(type, shape, given) {
  return shape ? /** @type {ServerFrame} */ (complete(given, shape, type)) : null;
}

/** @param {Field} field */
function nameOf(field) {
  return typeof field === "string" ? field : field[0];
}

/**
 * @param {Record<string, unknown>} given
 * @param {Shape} shape
 * @param {string} [type]
 */
function complete(given, shape, type) {
  /** @type {Record<string, unknown>} */
  const whole = type === undefined ? {} : { type };
  for (const field of shape) {
    if (typeof field === "string") whole[field] = given[field];
    else whole[field[0]] = filled(given[field[0]], field[1], field[2]);
  }
  return whole;
}

/** @param {unknown} value @param {unknown} fallback @param {Shape} [shape] @returns {unknown} */
function filled(value, fallback, shape) {
  if (value === undefined || value === null) return fallback === NEEDED ? value : fallback;
  if (!shape) return value;
  if (Array.isArray(value)) return value.map((item) => complete(item, shape));
  return complete(/** @type {Record<string, unknown>} */ (value), shape);
}

/** Refusals that say nothing against what was asked. */
const PASSING = ["slow_down", "unavailable"];
const RETRY_MS = 3_000;

/**
 * After how many milliseconds what was refused may be asked again; null where that is no use.
 * @param {RefusedFrame} frame
 */
export function passes_ms(frame) {
  return PASSING.includes(frame.code) ? (frame.retry_after_s ?? 0) * 1000 || RETRY_MS : null;
}
