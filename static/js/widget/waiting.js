// @ts-check
// What a customer reads while waiting for a person: place in the queue, or hours and a way to be written to.
// Emits `contact` (detail: the address).

import { icon } from "../wire/icons.js";
import { fill, h } from "./dom.js";

/** @typedef {import("../wire/frames.js").Availability} Availability */
/** @typedef {import("./words.js").Words} Words */
/**
 * @typedef {object} Waiting
 * @property {number | null} position
 * @property {Availability | null} availability
 * @property {boolean} contact  an address was left
 * @property {boolean} leaving  it is on its way
 * @property {boolean} refused  the address was not accepted
 */

export class ChatWaiting extends HTMLElement {
  /** @type {Words} */
  // @ts-expect-error set before the element is connected
  words;
  #shown = "";
  #email = h("input", { type: "email", name: "email", id: "email", required: true, autocomplete: "email", maxlength: "254" });

  /** @param {Waiting} now */
  render(now) {
    const key = JSON.stringify([now, this.words.locale]);
    if (key === this.#shown) return;
    this.#shown = key;
    const focused = this.contains(document.activeElement) && document.activeElement === this.#email;
    const away = now.availability !== null && !now.availability.online;
    fill(this, ...(away ? this.#away(now, /** @type {Availability} */ (now.availability)) : this.#queued(now)));
    if (focused) this.#email.focus();
  }

  /** @param {Waiting} now */
  #queued(now) {
    const { position } = now;
    const place = position === null ? "waiting" : position === 1 ? "waiting_next" : "waiting_place";
    return [
      h("p", { class: "headline" }, icon("people"), h("span", {}, this.words.say(place, { place: position ?? 0 }))),
      h("p", { class: "detail" }, this.words.say("waiting_detail")),
    ];
  }

  /** @param {Waiting} now @param {Availability} availability */
  #away(now, availability) {
    const opens = availability.opens_at;
    return [
      h("p", { class: "headline" }, icon("clock"), h("span", {}, this.words.say("nobody_here"))),
      h("p", { class: "detail" }, opens === null ? this.words.say("kept_for_us") : this.words.say("back_at", { when: this.words.moment(opens) })),
      this.#hours(availability),
      now.contact ? h("p", { class: "left" }, icon("check"), h("span", {}, this.words.say("contact_known"))) : this.#form(now),
    ];
  }

  /** @param {Availability} availability */
  #hours({ hours, timezone }) {
    if (hours.length === 0) return null;
    const rows = spans(hours).map(([from, to, open]) => {
      const days = from === to ? this.words.weekday(from) : `${this.words.weekday(from)} – ${this.words.weekday(to)}`;
      return h("div", {}, h("dt", {}, days), h("dd", {}, open === "" ? this.words.say("closed") : open.replace("-", " – ")));
    });
    return h("details", { class: "hours" }, h("summary", {}, icon("chevronRight"), this.words.say("hours", { timezone })), h("dl", {}, ...rows));
  }

  /** @param {Waiting} now */
  #form(now) {
    this.#email.placeholder = this.words.say("email_example");
    this.#email.setAttribute("aria-invalid", String(now.refused));
    return h(
      "form", { class: "contact", onsubmit: (/** @type {Event} */ event) => this.#leave(event) },
      h("label", { for: "email" }, this.words.say("email_label")),
      h("div", { class: "field" }, this.#email, h("button", { type: "submit", class: "primary", disabled: now.leaving }, this.words.say("email_send"))),
      now.refused && h("p", { class: "error", role: "alert" }, this.words.say("email_refused")),
    );
  }

  /** @param {Event} event */
  #leave(event) {
    event.preventDefault();
    this.dispatchEvent(new CustomEvent("contact", { detail: this.#email.value.trim() }));
  }
}

/** Days in a row with the same hours, from Monday. @param {string[]} hours @returns {[number, number, string][]} */
function spans(hours) {
  /** @type {[number, number, string][]} */
  const found = [];
  hours.forEach((open, day) => {
    const last = found.at(-1);
    if (last !== undefined && last[2] === open) last[1] = day;
    else found.push([day, day, open]);
  });
  return found;
}

customElements.define("chat-waiting", ChatWaiting);
