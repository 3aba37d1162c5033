// @ts-check
/** What is kept in this browser: settings, unread counts and unsent texts. Storage only; works without one too. */

/** @typedef {"sound"|"notify"|"letters"|"theme"|"filter"} Setting */
/** A message that no server has acknowledged. @typedef {{ id: string, conversation: string, text: string, at: number, error: string|null }} Letter */

/** @type {Record<Setting, string>} */
const DEFAULTS = { sound: "on", notify: "off", letters: "on", theme: "system", filter: "all" };

export class Preferences {
  /** What outlives a reload of its tab. @type {readonly Letter[]} */
  #unsent;

  /** @param {string} agent whose they are */
  constructor(agent) {
    this.agent = agent;
    this.#unsent = parsed(read("sessionStorage", this.#unsentKey));
  }

  get unsent() {
    return this.#unsent;
  }

  /** @param {readonly Letter[]} letters */
  keepUnsent(letters) {
    this.#unsent = letters;
    write("sessionStorage", this.#unsentKey, letters.length === 0 ? null : JSON.stringify(letters));
  }

  /**
   * @param {Setting} name
   * @returns {string}
   */
  get(name) {
    return read("localStorage", `chatsvc.${name}`) ?? DEFAULTS[name];
  }

  /** @param {Setting} name */
  isOn(name) {
    return this.get(name) === "on";
  }

  /**
   * @param {Setting} name
   * @param {string} value
   */
  set(name, value) {
    write("localStorage", `chatsvc.${name}`, value);
  }

  /** Under which all tabs of this agent keep what is unread. */
  get unreadKey() {
    return `chatsvc.unread.${this.agent}`;
  }

  unread() {
    return read("localStorage", this.unreadKey);
  }

  /** @param {string} text */
  keepUnread(text) {
    write("localStorage", this.unreadKey, text);
  }

  /** @param {string} conversation */
  draft(conversation) {
    return read("sessionStorage", this.#draftKey(conversation)) ?? "";
  }

  /**
   * @param {string} conversation
   * @param {string} text an empty one forgets the draft
   */
  keepDraft(conversation, text) {
    write("sessionStorage", this.#draftKey(conversation), text.trim() === "" ? null : text);
  }

  /** Whether any conversation holds unsent text. */
  hasDrafts() {
    if (this.#unsent.length > 0) return true;
    try {
      return Object.keys(sessionStorage).some((key) => key.startsWith(this.#draftKey("")));
    } catch {
      return false; // storage is denied: nothing was kept
    }
  }

  forgetDrafts() {
    this.keepUnsent([]);
    try {
      for (const key of Object.keys(sessionStorage))
        if (key.startsWith(this.#draftKey(""))) sessionStorage.removeItem(key);
    } catch {
      // Storage is denied: there is nothing to forget.
    }
  }

  get #unsentKey() {
    return `chatsvc.unsent.${this.agent}`;
  }

  /** @param {string} conversation */
  #draftKey(conversation) {
    return `chatsvc.draft.${this.agent}.${conversation}`;
  }
}

/** @param {string|null} kept @returns {Letter[]} */
function parsed(kept) {
  try {
    const letters = JSON.parse(kept ?? "[]");
    return Array.isArray(letters) ? letters : [];
  } catch {
    return []; // written by hand
  }
}

/**
 * @param {"localStorage"|"sessionStorage"} storage
 * @param {string} key
 * @returns {string|null}
 */
function read(storage, key) {
  try {
    return globalThis[storage].getItem(key);
  } catch {
    return null; // storage is denied
  }
}

/**
 * @param {"localStorage"|"sessionStorage"} storage
 * @param {string} key
 * @param {string|null} value
 */
function write(storage, key, value) {
  try {
    if (value === null) globalThis[storage].removeItem(key);
    else globalThis[storage].setItem(key, value);
  } catch {
    // Storage is denied or full: the setting lasts as long as the page.
  }
}
