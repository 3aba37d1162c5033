// @ts-check
/** What was measured of the answers of one conversation: asked of the service, and kept by turn and part. */

/** @typedef {import("../wire/frames.js").Stage} Stage */
/**
 * @typedef {object} Trace
 * @property {string} turn
 * @property {number} part
 * @property {readonly Stage[]} stages
 * @property {Readonly<Record<string, string>>} marks what was warm
 * @property {number|null} painted_ms what the customer saw: submit to the first visible text
 * @property {number|null} added_ms what we added to the model's own time
 */
/** Oldest first. @typedef {ReadonlyMap<string, Trace>} Traces */

/**
 * The newest answers of a conversation, oldest first; null where they cannot be read now.
 * @param {string} conversation
 * @returns {Promise<Trace[]|null>}
 */
export async function fetchTraces(conversation) {
  try {
    const response = await fetch(`/api/v1/conversations/${encodeURIComponent(conversation)}/turns/?limit=100`);
    return response.ok ? (await response.json()).results.reverse() : null;
  } catch {
    // The network is gone: the bars come when the conversation is shown again.
    return null;
  }
}

/**
 * With newer ones behind. A trace that knows of its paint is not replaced.
 * @param {Traces} known
 * @param {Iterable<Trace>} newer
 * @returns {Traces}
 */
export function withTraces(known, newer) {
  const all = new Map(known);
  for (const trace of newer) {
    const key = `${trace.turn} ${trace.part}`;
    if (all.get(key)?.painted_ms == null) all.set(key, trace);
  }
  return all;
}

/**
 * The trace of the answer that a message is, if it is one.
 * @param {Traces} traces
 * @param {{ turn: string|null, part: number|null }} message
 */
export function traceOf(traces, { turn, part }) {
  return turn === null ? null : (traces.get(`${turn} ${part ?? 1}`) ?? null);
}
