// @ts-check
/** Says that somebody waits: a tone, the title's count, a polite region, a notification of the system. */

import { hold } from "../wire/locks.js";

/** @typedef {import("./catalog.js").Words} Words */
/** @typedef {import("../wire/frames.js").InboxRow} InboxRow */

// Two short sine notes a fifth apart (A5, E6): heard over talk, not startling.
const NOTES = /** @type {const} */ ([
  [880, 0],
  [1318.5, 0.13],
]);
const LOUDNESS = 0.12;
const RINGS = "chatsvc-desk-rings";
/** All tabs of an agent have heard of the same news by then. */
const RING_MS = 1_000;

export class Announcer {
  #words;
  #preferences;
  #region;
  #open;
  /** @type {AudioContext|null} */
  #audio = null;

  /**
   * @param {Words} words
   * @param {import("./preferences.js").Preferences} preferences
   * @param {HTMLElement} region read out politely
   * @param {(conversation: string) => void} open
   */
  constructor(words, preferences, region, open) {
    this.#words = words;
    this.#preferences = preferences;
    this.#region = region;
    this.#open = open;
    // Browsers let a page sound only after a gesture.
    for (const type of ["pointerdown", "keydown"])
      addEventListener(type, () => this.#unlock(), { once: true, passive: true });
  }

  /** @param {readonly InboxRow[]} rows that have come into the queue @param {(row: InboxRow) => string} nameOf */
  queued(rows, nameOf) {
    const many = rows.length > 1;
    this.say(
      many
        ? this.#words.t("announce.queued_many", { count: rows.length })
        : this.#words.t("announce.queued", { name: nameOf(rows[0]) }),
    );
    if (this.#preferences.isOn("sound")) void this.#ring();
    if (this.#preferences.isOn("notify") && (document.hidden || !document.hasFocus()))
      for (const row of rows.slice(0, 3)) this.#notify(row, nameOf(row));
  }

  /** @param {string} text */
  say(text) {
    this.#region.textContent = text;
  }

  /** @param {number} count of conversations in the queue */
  title(count) {
    const title = `${this.#words.t("shell.title")} · chatsvc`;
    document.title = count > 0 ? this.#words.t("announce.title", { count, title }) : title;
  }

  /** Whether the browser lets us sound by now. */
  get unlocked() {
    return this.#audio?.state === "running";
  }

  /** In one of this browser's tabs, and in one that may sound. */
  async #ring() {
    if (!this.unlocked) return;
    const release = await hold(RINGS, { ifAvailable: true }).catch(() => () => {}); // denied: nobody to ask
    if (release === null) return;
    this.chime();
    setTimeout(release, RING_MS);
  }

  chime() {
    const audio = this.#audio;
    if (audio === null || audio.state !== "running") return;
    for (const [pitch, delay_s] of NOTES) note(audio, pitch, audio.currentTime + delay_s);
  }

  #unlock() {
    if (!("AudioContext" in globalThis)) return;
    this.#audio ??= new AudioContext();
    void this.#audio.resume();
  }

  /** @param {InboxRow} row @param {string} name */
  #notify(row, name) {
    if (!("Notification" in globalThis) || Notification.permission !== "granted") return;
    const title = this.#words.t("announce.notification", { name });
    const notification = new Notification(title, { body: row.last_line, tag: row.conversation, silent: true });
    notification.addEventListener("click", () => {
      window.focus();
      this.#open(row.conversation);
      notification.close();
    });
  }
}

/**
 * @param {AudioContext} audio
 * @param {number} pitch
 * @param {number} start
 */
function note(audio, pitch, start) {
  const oscillator = new OscillatorNode(audio, { frequency: pitch });
  const gain = new GainNode(audio, { gain: 0 });
  gain.gain.setValueAtTime(0, start);
  gain.gain.linearRampToValueAtTime(LOUDNESS, start + 0.015);
  gain.gain.exponentialRampToValueAtTime(0.001, start + 0.32);
  oscillator.connect(gain).connect(audio.destination);
  oscillator.start(start);
  oscillator.stop(start + 0.34);
}
