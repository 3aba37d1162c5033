// @ts-check
/** The agent's inbox as a pure reducer over frames: which rows there are, how they are ordered and filtered. */

/** @typedef {import("../wire/frames.js").InboxRow} InboxRow */
/** @typedef {import("../wire/frames.js").AgentView} AgentView */
/** @typedef {import("../wire/frames.js").ServerFrame} ServerFrame */
/** @typedef {"waiting"|"mine"|"assistant"|"all"|"resolved"} Filter */
/**
 * @typedef {object} Inbox
 * @property {boolean} loaded whether a snapshot has arrived
 * @property {AgentView|null} me
 * @property {readonly AgentView[]} agents
 * @property {ReadonlyMap<string, InboxRow>} rows by conversation
 */

/** @type {readonly Filter[]} */
export const FILTERS = ["waiting", "mine", "assistant", "all", "resolved"];

/** @returns {Inbox} */
export function emptyInbox() {
  return { loaded: false, me: null, agents: [], rows: new Map() };
}

/**
 * @param {Inbox} inbox
 * @param {ServerFrame} frame
 * @returns {Inbox} the same object when nothing changed
 */
export function reduceInbox(inbox, frame) {
  switch (frame.type) {
    case "inbox":
      return snapshot(inbox, frame);
    case "inbox.row":
    case "watching":
      return withRow(inbox, frame.row);
    case "presence":
      return withAgents(inbox, frame.agents);
    default:
      return inbox;
  }
}

/**
 * What a filter shows, in the order of urgency: who waits longest first, then the most recent.
 * @param {Inbox} inbox
 * @param {Filter} filter
 * @param {string} [query] words that must all occur in the name, the last line or the owner's name
 * @returns {InboxRow[]}
 */
export function visibleRows(inbox, filter, query = "") {
  const words = query.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  return [...inbox.rows.values()].filter((row) => belongs(inbox, row, filter) && matches(row, words)).sort(byUrgency);
}

/**
 * Rows that fall under a filter, without the search words.
 * @param {Inbox} inbox
 * @param {Filter} filter
 */
export function countRows(inbox, filter) {
  let count = 0;
  for (const row of inbox.rows.values()) if (belongs(inbox, row, filter)) count += 1;
  return count;
}

/**
 * @param {Inbox} inbox
 * @param {InboxRow} row
 */
export function isMine(inbox, row) {
  return row.owner.kind === "agent" && inbox.me !== null && row.owner.agent === inbox.me.id;
}

/** @param {InboxRow} row */
export function isQueued(row) {
  return row.status === "open" && row.owner.kind === "queue";
}

/**
 * Conversations that came into the queue between two states: what must be announced.
 * A first snapshot announces nothing, its rows are there to be seen.
 * @param {Inbox} before
 * @param {Inbox} after
 * @returns {InboxRow[]}
 */
export function newlyQueued(before, after) {
  if (!before.loaded) return [];
  return [...after.rows.values()].filter((row) => {
    const earlier = before.rows.get(row.conversation);
    return isQueued(row) && !(earlier && isQueued(earlier));
  });
}

/**
 * A snapshot holds every row there is to see; only a row known to be newer survives it.
 * @param {Inbox} inbox
 * @param {import("../wire/frames.js").InboxFrame} frame
 * @returns {Inbox}
 */
function snapshot(inbox, frame) {
  const rows = new Map(frame.rows.map((row) => [row.conversation, newer(inbox.rows.get(row.conversation), row)]));
  return { loaded: true, me: frame.me, agents: frame.agents, rows };
}

/**
 * @param {Inbox} inbox
 * @param {InboxRow} row
 * @returns {Inbox}
 */
function withRow(inbox, row) {
  const known = inbox.rows.get(row.conversation);
  if (newer(known, row) === known) return inbox;
  return { ...inbox, rows: new Map(inbox.rows).set(row.conversation, row) };
}

/**
 * @param {Inbox} inbox
 * @param {readonly AgentView[]} agents
 * @returns {Inbox}
 */
function withAgents(inbox, agents) {
  const me = agents.find((agent) => agent.id === inbox.me?.id) ?? inbox.me;
  return { ...inbox, agents, me };
}

/**
 * Frames may arrive late: the higher number wins, and of equals the later arrival.
 * @param {InboxRow|undefined} known
 * @param {InboxRow} row
 */
function newer(known, row) {
  return known && known.seq > row.seq ? known : row;
}

/**
 * @param {Inbox} inbox
 * @param {InboxRow} row
 * @param {Filter} filter
 */
function belongs(inbox, row, filter) {
  if (filter === "resolved") return row.status === "resolved";
  if (row.status === "resolved") return false;
  if (filter === "waiting") return isQueued(row);
  if (filter === "mine") return isMine(inbox, row);
  return filter === "all" || row.owner.kind === "assistant";
}

/**
 * @param {InboxRow} row
 * @param {readonly string[]} words
 */
function matches(row, words) {
  if (words.length === 0) return true;
  const text = `${row.customer} ${row.last_line} ${row.owner.name ?? ""}`.toLocaleLowerCase();
  return words.every((word) => text.includes(word));
}

/**
 * @param {InboxRow} a
 * @param {InboxRow} b
 */
function byUrgency(a, b) {
  const [waitA, waitB] = [waitingSince(a), waitingSince(b)];
  if (waitA !== null && waitB !== null) return waitA - waitB || byId(a, b);
  if (waitA !== null) return -1;
  if (waitB !== null) return 1;
  return b.at - a.at || byId(a, b);
}

/**
 * @param {InboxRow} row
 * @returns {number|null}
 */
export function waitingSince(row) {
  return row.status === "open" ? row.waiting_since : null;
}

/**
 * @param {InboxRow} a
 * @param {InboxRow} b
 */
function byId(a, b) {
  return a.conversation < b.conversation ? -1 : 1;
}
