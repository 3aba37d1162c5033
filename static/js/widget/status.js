// @ts-check
// What the widget says around a conversation: who answers now, how the line is, what to wait for. Pure.

/** @typedef {import("./chat.js").Chat} Chat */
/** @typedef {import("./words.js").Words} Words */
/** @typedef {{text: string, tone: "quiet" | "warning" | "danger"}} Notice */

const LOGIN_AGAIN = 4401;
const REPLACED = 4409;
const MOST_SUGGESTIONS = 3;

/**
 * @param {Pick<Chat, "line" | "assistant">} chat
 * @param {{assistant: string, name: string}} site
 * @param {Words} words
 * @returns {import("./header.js").Speaker}
 */
export function speaker({ line, assistant }, site, words) {
  const { owner, status, availability } = line;
  if (status === "resolved") return { author: owner.kind, name: owner.name || site.name, state: words.say("resolved_short") };
  switch (owner.kind) {
    case "agent": return { author: "agent", name: owner.name, state: words.say("state_agent", { name: site.name }) };
    case "queue": return { author: "queue", name: site.name, state: words.say(availability?.online === false ? "state_away" : "state_queue") };
    case "assistant":
      return assistant
        ? { author: "assistant", name: site.assistant, state: words.say("state_assistant") }
        : { author: "queue", name: site.name, state: words.say("state_people") };
  }
}

/**
 * What to say about the line; null while all is well.
 * @param {Pick<Chat, "connection" | "code" | "line">} chat @param {boolean} online @param {Words} words
 * @returns {Notice | null}
 */
export function notice({ connection, code, line }, online, words) {
  if (!online) return { text: words.say(line.pending.length > 0 ? "offline_kept" : "offline"), tone: "warning" };
  switch (connection) {
    case "open": return null;
    case "connecting": return { text: words.say("connecting"), tone: "quiet" };
    case "reconnecting": return { text: words.say(line.pending.length > 0 ? "reconnecting_kept" : "reconnecting"), tone: "warning" };
    case "closed": return code === null || code === 4408 ? null : { text: words.say(ended(code)), tone: "danger" };
  }
}

/**
 * The first bubble of a conversation, with questions to begin with; null while an older page stands above.
 * @param {Chat["line"]} line
 * @param {{assistant: string, greeting: Record<string, string>, suggestions: Record<string, string[]>}} site
 * @param {Words} words
 */
export function greeting(line, site, { locale }) {
  if (line.earlier) return null;
  const started = line.items.length > 0 || line.pending.length > 0;
  const suggestions = started ? [] : (site.suggestions[locale] ?? []).slice(0, MOST_SUGGESTIONS);
  return { name: site.assistant, text: site.greeting[locale] || site.greeting.en, suggestions };
}

/**
 * What a customer waits for; null while no person is.
 * @param {Pick<Chat, "line" | "contact" | "contactRefused" | "leavingContact">} chat
 * @returns {import("./waiting.js").Waiting | null}
 */
export function waiting({ line, contact, contactRefused, leavingContact }) {
  if (line.owner.kind !== "queue" || line.status === "resolved") return null;
  const { queuePosition, availability } = line;
  return { position: queuePosition, availability, contact, leaving: leavingContact, refused: contactRefused !== null };
}

/** Whether a person can still be asked for. @param {Pick<Chat, "line" | "asking">} chat */
export function canAskForHuman({ line, asking }) {
  return !asking && (line.owner.kind === "assistant" || line.status === "resolved");
}

/** @param {number} code */
function ended(code) {
  if (code === LOGIN_AGAIN) return "ended_login";
  return code === REPLACED ? "ended_replaced" : "ended";
}
