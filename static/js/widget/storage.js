// @ts-check
// What the frame keeps between pages: its partitioned storage, or memory where the browser denies it. No DOM.

/** Values are JSON. A value that cannot be read is as good as none. */
export class Keep {
  /** @type {Map<string, string>} */
  #memory = new Map();
  #prefix;
  #backing;

  /** @param {string} prefix @param {() => Storage} backing  may throw, as `window.localStorage` does where denied */
  constructor(prefix, backing) {
    this.#prefix = prefix;
    this.#backing = backing;
  }

  /** @param {string} key @returns {unknown} */
  read(key) {
    try {
      return JSON.parse(this.#stored(key) ?? "null");
    } catch {
      // Written by another version, or by hand.
      return null;
    }
  }

  /** @param {string} key @param {unknown} value  null removes */
  write(key, value) {
    const name = this.#prefix + key;
    this.#memory.delete(name);
    try {
      if (value === null) this.#backing().removeItem(name);
      else this.#backing().setItem(name, JSON.stringify(value));
    } catch {
      // Denied or full: a copy in memory serves this page.
      if (value !== null) this.#memory.set(name, JSON.stringify(value));
    }
  }

  /** @param {string} key @returns {string | null} */
  #stored(key) {
    const name = this.#prefix + key;
    try {
      return this.#memory.get(name) ?? this.#backing().getItem(name);
    } catch {
      return null;
    }
  }
}
