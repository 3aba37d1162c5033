// @ts-check
/** The bar above the list: whose desk it is, online or away, settings. */

import { button, emit, h, setAttribute, setText } from "./dom.js";
import { letterOf } from "./keys.js";
import { SettingsMenu } from "./settings-menu.js";

/** @typedef {import("./view.js").View} View */

/** Emits `command` (detail: { command }). */
export class DeskBar extends HTMLElement {
  menu = new SettingsMenu();
  #presence = h("button", {
    type: "button",
    class: "presence",
    role: "switch",
    "aria-keyshortcuts": letterOf("presence"),
  });

  connectedCallback() {
    this.setAttribute("role", "banner");
    this.#presence.addEventListener("click", () => emit(this, "command", { command: "presence" }));
  }

  /** @param {View} view */
  paint(view) {
    if (!this.firstChild) this.#build(view);
    const online = view.desk.me?.online ?? false;
    this.#presence.hidden = view.desk.me === null;
    setAttribute(this.#presence, "aria-checked", String(online));
    setAttribute(this.#presence, "aria-label", view.words.t("presence.label"));
    setAttribute(
      this.#presence,
      "title",
      `${view.words.t(online ? "presence.go_away" : "presence.go_online")} (${letterOf("presence")})`,
    );
    setText(this.#presence, view.words.t(online ? "presence.online" : "presence.away"));
    this.menu.paint(view);
  }

  /** @param {View} view */
  #build({ words }) {
    const { workspace = "", mark = "" } = document.body.dataset;
    const settings = button(
      { label: words.t("menu.label"), icon: "settings", className: "quiet", iconOnly: true },
      () => this.menu.togglePopover(),
    );
    this.append(
      h("h1", { class: "brand" }, h("img", { src: mark, alt: "", width: 24, height: 24 }), h("span", {}, workspace)),
      this.#presence,
      settings,
      this.menu,
    );
  }
}
