// @ts-check
// What is told besides what is shown: whole lines for screen readers, once each and never in fragments; toasts; a chime.

import { plain } from "../wire/markdown.js";
import { icon } from "../wire/icons.js";
import { fill, h } from "./dom.js";

/** @typedef {import("./layout.js").ThreadRow} ThreadRow */
/** @typedef {import("../wire/timeline.js").Timeline} Timeline */
/** @typedef {import("./words.js").Words} Words */

const TOAST_MS = 6_000;
const KEPT_LINES = 5;
/** By then a page that is looked at has said so. */
const LOOK_MS = 250;
/** All pages have heard of the same news by then. */
const RING_MS = 1_000;

const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Announcer {
  element = h("div", { class: "announcer" });
  label = "";
  #spoken = h("div", { class: "hidden", "aria-live": "polite", "aria-atomic": "false" });
  #toasts = h("div", { class: "toasts", role: "status" });
  /** Keys already said; null until the first page, which is not news. @type {Set<string> | null} */
  #said = null;

  constructor() {
    this.element.append(this.#spoken, this.#toasts);
  }

  forget() {
    this.#said = null;
  }

  /**
   * Says what is new and whole. Returns how many new messages of others there are.
   * @param {ThreadRow[]} rows @param {Timeline} line @param {Words} words
   */
  announce(rows, line, words) {
    if (line.epoch === null) return 0;
    const whole = rows.filter((row) => row.type === "system" || (row.type === "bubble" && row.live === null && row.author !== "customer"));
    const said = this.#said ?? new Set(whole.map((row) => row.key));
    const news = whole.filter((row) => !said.has(row.key));
    // Older pages stand above everything already said.
    const firstSaid = whole.findIndex((row) => said.has(row.key));
    const later = news.filter((row) => said.size === 0 || whole.indexOf(row) > firstSaid);
    for (const row of later) this.#say(row.type === "bubble" ? `${row.name}: ${plain(row.text)}` : words.say(/** @type {any} */ (row).word, /** @type {any} */ (row).values));
    this.#hearStart(rows, said, words);
    for (const row of news) said.add(row.key);
    this.#said = said;
    return later.filter((row) => row.type === "bubble").length;
  }

  /** @param {string} text */
  toast(text) {
    const dismiss = () => toast.remove();
    const toast = h("div", { class: "toast" }, h("span", {}, text), h("button", { type: "button", class: "tool", "aria-label": this.label, onclick: dismiss }, icon("close")));
    fill(this.#toasts, toast);
    setTimeout(dismiss, TOAST_MS);
  }

  /** That an answer has begun is worth one word. @param {ThreadRow[]} rows @param {Set<string>} said @param {Words} words */
  #hearStart(rows, said, words) {
    for (const row of rows) {
      if (row.type !== "bubble" || row.live === null || said.has(`live${row.key}`)) continue;
      said.add(`live${row.key}`);
      this.#say(words.say("answering", { name: row.name }));
    }
  }

  /** @param {string} text */
  #say(text) {
    this.#spoken.append(h("p", {}, text));
    while (this.#spoken.childElementCount > KEPT_LINES) this.#spoken.firstElementChild?.remove();
  }
}

/** @type {AudioContext | null} */
let context = null;

/**
 * Rings for news in one page of this browser, unless somebody reads them in another meanwhile.
 * @param {() => boolean} unread  whether they still are
 */
export async function ring(unread) {
  const once = async (/** @type {unknown} */ lock) => {
    if (lock === null) return;
    await pause(LOOK_MS);
    if (unread()) chime();
    await pause(RING_MS);
  };
  await (navigator.locks?.request("chatsvc-ring", { ifAvailable: true }, once) ?? once(true)).catch(() => once(true));
}

/** Two soft notes for a message that came while nobody looked. Made, not loaded. */
function chime() {
  context ??= new AudioContext();
  // Before the first gesture the browser keeps it silent; that is its right.
  if (context.state === "suspended") void context.resume();
  [660, 880].forEach((frequency, index) => note(/** @type {AudioContext} */ (context), frequency, index * 0.12));
}

/** @param {AudioContext} audio @param {number} frequency @param {number} after_s */
function note(audio, frequency, after_s) {
  const start = audio.currentTime + after_s;
  const tone = new OscillatorNode(audio, { frequency, type: "sine" });
  const volume = new GainNode(audio, { gain: 0 });
  volume.gain.setValueAtTime(0, start);
  volume.gain.linearRampToValueAtTime(0.08, start + 0.015);
  volume.gain.exponentialRampToValueAtTime(0.0001, start + 0.35);
  tone.connect(volume).connect(audio.destination);
  tone.start(start);
  tone.stop(start + 0.4);
}
