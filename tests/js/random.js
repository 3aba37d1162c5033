// @ts-check
// A small seeded generator, so that a failing schedule can be run again.

/** @param {number} seed */
export function generator(seed) {
  let state = seed >>> 0;
  // mulberry32
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  /** @param {number} limit */
  const below = (limit) => Math.floor(next() * limit);
  /** @template T @param {readonly T[]} items @returns {T} */
  const pick = (items) => items[below(items.length)];
  /** @template T @param {readonly T[]} items @returns {T[]} */
  const shuffled = (items) => items.map((item) => /** @type {const} */ ([next(), item])).sort((a, b) => a[0] - b[0]).map(([, item]) => item);
  /** @param {number} depth @returns {unknown} */
  const value = (depth) => {
    const kind = below(depth > 0 ? 6 : 4);
    if (kind === 0) return pick([null, true, false]);
    if (kind === 1) return pick([0, 1, -1, 1.5, 2 ** 31, 1e12, -7]);
    if (kind < 4) return pick(["", "a", "订单 1042", "👩‍👩‍👧", "x".repeat(40), "\u0000"]);
    const size = below(4);
    if (kind === 4) return Array.from({ length: size }, () => value(depth - 1));
    return Object.fromEntries(Array.from({ length: size }, (_, index) => [`k${index}`, value(depth - 1)]));
  };
  return { next, below, pick, shuffled, value };
}
