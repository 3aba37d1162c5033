// @ts-check
// What a customer asked for besides texts, kept until the server has answered it. No DOM.

/** @typedef {{type: string} & Record<string, unknown>} Fields */
/** @typedef {Fields & {id: string, conversation: string | null}} Asked */

export class Requests {
  /** @type {Map<string, Asked>} */
  #open = new Map();
  #send;

  /** @param {(frame: Fields) => boolean} send */
  constructor(send) {
    this.#send = send;
  }

  /** @param {Fields} fields @param {string | null} conversation  null before a first welcome: delivered after it */
  add(fields, conversation) {
    const asked = { ...fields, id: crypto.randomUUID(), conversation };
    this.#open.set(asked.id, asked);
    if (conversation !== null) this.#send(asked);
  }

  /** Sends (again) what has no answer; what belongs to no conversation yet goes to this one. @param {string} conversation */
  deliver(conversation) {
    for (const asked of this.#open.values()) {
      asked.conversation ??= conversation;
      this.#send(asked);
    }
  }

  /** @param {string} id @returns {string | null} the type of the request that this answers */
  answered(id) {
    const asked = this.#open.get(id);
    this.#open.delete(id);
    return asked?.type ?? null;
  }

  /** @param {string} type */
  waitsFor(type) {
    return [...this.#open.values()].some((asked) => asked.type === type);
  }

  clear() {
    this.#open.clear();
  }
}
