// @ts-check
// What the server has not answered yet, sent again by the same id: texts, which survive a reload, and requests. No DOM.

/** @typedef {import("./storage.js").Keep} Keep */
/**
 * `who` is whom the page said it speaks for ("" is a visitor); `customer` and `conversation` are known after a welcome.
 * @typedef {{id: string, text: string, at: number, who: string, customer: string | null, conversation: string | null,
 *   error: string | null}} Letter
 */
/** @typedef {{type: string} & Record<string, unknown>} Fields */
/** @typedef {Fields & {id: string, conversation: string | null}} Asked */

const KEY = "outbox";
const LIMIT = 100;

export class Outbox {
  #keep;

  /** @param {Keep} keep */
  constructor(keep) {
    this.#keep = keep;
  }

  /** @returns {Letter[]} */
  all() {
    const kept = this.#keep.read(KEY);
    return Array.isArray(kept) ? kept : [];
  }

  /** In place of the one with its id, or last. @param {Letter} letter @returns {boolean} false when the outbox is full: nothing was kept */
  put(letter) {
    const letters = this.all();
    const index = letters.findIndex((one) => one.id === letter.id);
    if (index < 0 && letters.length >= LIMIT) return false;
    letters.splice(index < 0 ? letters.length : index, 1, letter);
    this.#store(letters);
    return true;
  }

  /** @param {string} id */
  remove(id) {
    const letters = this.all();
    if (letters.some((letter) => letter.id === id)) this.#store(letters.filter((letter) => letter.id !== id));
  }

  /** @param {string} id @param {Partial<Letter>} change */
  change(id, change) {
    this.#store(this.all().map((letter) => (letter.id === id ? { ...letter, ...change } : letter)));
  }

  /**
   * Letters of this customer; those written before the first welcome become theirs and go to this conversation.
   * @param {{customer: string, who: string, conversation: string}} welcomed
   */
  claim({ customer, who, conversation }) {
    const letters = this.all().map((letter) => (
      letter.customer === null && letter.who === who ? { ...letter, customer, conversation } : letter
    ));
    this.#store(letters);
    return letters.filter((letter) => letter.customer === customer);
  }

  /** What nobody was named for becomes a known customer's, where no server has seen it. @param {Set<string>} ids @param {string} who */
  handOver(ids, who) {
    this.#store(this.all().map((letter) => (
      letter.customer === null && letter.who === "" && ids.has(letter.id) ? { ...letter, who } : letter
    )));
  }

  clear() {
    this.#store([]);
  }

  /** @param {Letter[]} letters */
  #store(letters) {
    this.#keep.write(KEY, letters.length === 0 ? null : letters);
  }
}

/** What a customer asked for besides texts. */
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
