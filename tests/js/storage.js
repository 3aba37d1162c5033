// @ts-check
// A browser's storage. Two tabs of a site have the same one.

/** @returns {Storage & {kept: Map<string, string>}} */
export function storage() {
  /** @type {Map<string, string>} */
  const kept = new Map();
  return /** @type {any} */ ({
    kept,
    getItem: (/** @type {string} */ name) => kept.get(name) ?? null,
    setItem: (/** @type {string} */ name, /** @type {string} */ value) => void kept.set(name, String(value)),
    removeItem: (/** @type {string} */ name) => void kept.delete(name),
  });
}
