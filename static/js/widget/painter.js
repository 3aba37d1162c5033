// @ts-check
// Shows growing text evenly: a little each animation frame, never half a character. Knows no markup.

const CATCH_UP_MS = 220;
const FRAME_MS = 1000 / 60;
const FASTEST_PER_MS = 4;

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/**
 * How far to paint next: a share of what is waiting, so that bursts come out evenly and nothing lags for long.
 * @param {string} text @param {number} painted  code units shown
 * @param {boolean} final  no more text follows: the last character is whole
 * @param {number} elapsed_ms
 * @returns {number} code units to show
 */
export function advance(text, painted, final, elapsed_ms) {
  const waiting = text.length - painted;
  if (waiting <= 0) return text.length;
  const wanted = Math.min(waiting, Math.max(1, Math.ceil(waiting * (elapsed_ms / CATCH_UP_MS)), Math.ceil((waiting - 2_000) / FASTEST_PER_MS)));
  return wholeAt(text, painted, painted + wanted, final);
}

/** The last offset up to `limit` (but beyond `painted` where one is whole) that splits no character. @param {string} text @param {number} painted @param {number} limit @param {boolean} final */
function wholeAt(text, painted, limit, final) {
  let end = painted;
  // A little more than wanted is looked at, because a family of emoji is long.
  for (const { segment } of segmenter.segment(text.slice(painted, limit + 64))) {
    const next = end + segment.length;
    // The last character that came may still grow (a joiner, an accent, a second surrogate).
    if (next === text.length && !final) break;
    if (next > limit && end > painted) break;
    end = next;
  }
  return end;
}

/** Paints towards a text until told that it is whole. */
export class Painter {
  /** Code units shown. */
  painted = 0;
  #paint;
  #done;
  #text = "";
  #final = false;
  #frozen = false;
  #frame = 0;
  #last = 0;
  #still;

  /**
   * @param {object} options
   * @param {(text: string) => void} options.paint
   * @param {() => void} options.done  all of a whole text is shown
   * @param {boolean} options.still  no motion: text appears as it comes
   */
  constructor({ paint, done, still }) {
    this.#paint = paint;
    this.#done = done;
    this.#still = still;
  }

  /** @param {string} text @param {boolean} final */
  aim(text, final) {
    if (!text.startsWith(this.#text.slice(0, this.painted))) this.painted = text.length;
    this.#text = text;
    this.#final = final;
    if (final) this.#frozen = false;
    if (this.#still) this.#step(Infinity);
    else this.#run();
  }

  /** Stops where it is; only a final text goes on. @returns {number} code units shown */
  freeze() {
    this.#frozen = true;
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    return this.painted;
  }

  #run() {
    if (this.#frame !== 0 || this.#frozen) return;
    this.#last = performance.now() - FRAME_MS;
    this.#frame = requestAnimationFrame((now) => this.#tick(now));
  }

  /** @param {number} now */
  #tick(now) {
    this.#frame = 0;
    const elapsed = now - this.#last;
    const before = this.painted;
    this.#step(elapsed);
    this.#last = now;
    const waits = this.painted < this.#text.length && (this.#final || this.painted > before);
    if (waits) this.#frame = requestAnimationFrame((next) => this.#tick(next));
  }

  /** @param {number} elapsed_ms */
  #step(elapsed_ms) {
    if (this.#frozen) return;
    this.painted = Math.min(this.#text.length, advance(this.#text, this.painted, this.#final, elapsed_ms));
    this.#paint(this.#text.slice(0, this.painted));
    if (this.#final && this.painted === this.#text.length) this.#done();
  }
}
