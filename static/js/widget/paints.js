// @ts-check
// What the customer sees of the answers, told to the server: when the first text stood on the screen, and how far.
// Serves measuring and pacing alone. No DOM.

/** @typedef {import("../wire/timeline.js").Timeline} Timeline */
/** @typedef {{turn: string, handle: number, place: number}} Started */
/** @typedef {{handle: number, upto: number, told: number, at: number}} Answer */

const PAUSE_MS = 250;
const REMEMBERED = 8;

export class Paints {
  #send;
  #now;
  /** Our own questions and when each was submitted. @type {Map<string, number>} */
  #asked = new Map();
  /** Answers of this connection by their place. @type {Map<number, Answer>} */
  #answers = new Map();
  #hiddenAt = -Infinity;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * @param {(frame: {type: string} & Record<string, unknown>) => boolean} send
   * @param {() => number} [now]  a clock that only runs forward, in ms
   */
  constructor(send, now = () => performance.now()) {
    this.#send = send;
    this.#now = now;
  }

  /** A question leaves the customer's hands. @param {string} id */
  submitted(id) {
    remember(this.#asked, id, this.#now());
  }

  /** Nobody can see the page now: what is painted later says nothing of us. */
  hidden() {
    this.#hiddenAt = this.#now();
  }

  /** An answer begins, or goes on after a lost connection. @param {Started} started */
  started({ handle, place }) {
    if (this.#answers.get(place)?.handle !== handle) remember(this.#answers, place, { handle, upto: 0, told: 0, at: -Infinity });
  }

  /** So much of the answer at `place` stands on the screen. @param {Timeline} line @param {number} place @param {number} upto */
  painted(line, place, upto) {
    const answer = this.#answers.get(place);
    if (answer === undefined || upto <= answer.upto) return;
    answer.upto = upto;
    if (answer.told === 0) this.#tell(answer, this.#since(line, place));
    else if (this.#now() - answer.at >= PAUSE_MS) this.#tell(answer, null);
    else this.#timer ??= setTimeout(() => this.#tellRest(), PAUSE_MS);
  }

  /** Another conversation is shown, or nobody is here any more. */
  stop() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#answers.clear();
  }

  #tellRest() {
    this.#timer = undefined;
    for (const answer of this.#answers.values()) if (answer.told < answer.upto) this.#tell(answer, null);
  }

  /** @param {Answer} answer @param {number | null} ms */
  #tell(answer, ms) {
    answer.told = answer.upto;
    answer.at = this.#now();
    this.#send({ type: "turn.painted", handle: answer.handle, upto: answer.upto, ...(ms === null ? {} : { ms }) });
  }

  /**
   * Since the question was submitted here; null where it was not, where the page was hidden, or where the answer waited
   * for somebody who handed the conversation back.
   * @param {Timeline} line @param {number} place
   */
  #since(line, place) {
    const before = line.items.findLast((item) => item.place < place && (item.kind === "owner" || isQuestion(item)));
    const id = before?.kind === "message" ? before.message.client_id : null;
    const at = id === null ? undefined : this.#asked.get(id);
    return at === undefined || at <= this.#hiddenAt ? null : Math.round((this.#now() - at) * 10) / 10;
  }
}

/** @param {import("../wire/timeline.js").Item} item */
function isQuestion(item) {
  return item.kind === "message" && item.message.author === "customer";
}

/** @template K, V @param {Map<K, V>} map @param {K} key @param {V} value */
function remember(map, key, value) {
  map.set(key, value);
  for (const oldest of map.keys()) if (map.size > REMEMBERED) map.delete(oldest);
}
