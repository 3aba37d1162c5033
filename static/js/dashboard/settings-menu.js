// @ts-check
/** The small menu of settings: announcements, keys, appearance, language, log-out. */

import { icon } from "./icons.js";
import { button, emit, h, setAttribute, setText } from "./dom.js";
import { letterOf } from "./keys.js";

/** @typedef {import("./view.js").View} View */
/** @typedef {import("./preferences.js").Setting} Setting */

/** Emits `setting` (detail: { name, value }), `command`, `allow-notifications`, `language`, `log-out`. */
export class SettingsMenu extends HTMLElement {
  /** @type {Map<Setting, HTMLInputElement>} */
  #switches = new Map();
  #soundNote = h("p", { class: "menu-note" });
  #notifyNote = h("p", { class: "menu-note" });
  #allow = h("button", { type: "button" });
  #theme = h("select");

  connectedCallback() {
    this.className = "menu";
    this.setAttribute("popover", "auto");
  }

  /** @param {View} view */
  paint(view) {
    if (!this.firstChild) this.#build(view);
    for (const [name, input] of this.#switches) input.checked = view.preferences.isOn(name);
    if (this.#theme.value !== view.preferences.get("theme")) this.#theme.value = view.preferences.get("theme");
    this.#paintNotify(view);
    this.#soundNote.hidden = navigator.userActivation?.hasBeenActive ?? true;
    setText(this.#soundNote, view.words.t("menu.sound_blocked"));
  }

  /** @param {View} view */
  #paintNotify({ words }) {
    const permission = "Notification" in globalThis ? Notification.permission : "unsupported";
    const input = /** @type {HTMLInputElement} */ (this.#switches.get("notify"));
    input.hidden = permission !== "granted";
    this.#allow.hidden = permission !== "default";
    this.#notifyNote.hidden = permission === "granted" || permission === "default";
    setText(this.#allow, words.t("menu.notify_allow"));
    setText(this.#notifyNote, words.t(permission === "denied" ? "menu.notify_denied" : "menu.notify_unsupported"));
  }

  /** @param {View} view */
  #build({ words }) {
    setAttribute(this, "aria-label", words.t("menu.label"));
    this.#allow.addEventListener("click", () => emit(this, "allow-notifications"));
    this.append(
      this.#switch(
        "sound",
        words.t("menu.sound"),
        button({ label: words.t("menu.sound_try"), className: "quiet" }, () => emit(this, "try-sound")),
      ),
      this.#soundNote,
      this.#switch("notify", words.t("menu.notify"), this.#allow),
      this.#notifyNote,
      this.#switch("letters", words.t("menu.letters")),
      this.#themeRow(words),
      this.#languageRow(words),
      h("hr"),
      this.#item(words.t("menu.keys"), "more", () => emit(this, "command", { command: "help" }), letterOf("help")),
      ...this.#adminLink(words),
      this.#item(words.t("menu.log_out"), "logout", () => emit(this, "log-out")),
    );
  }

  /**
   * @param {Setting} name
   * @param {string} label
   * @param {HTMLElement} [besides]
   */
  #switch(name, label, besides) {
    const input = h("input", { type: "checkbox", class: "switch", role: "switch", id: `setting-${name}` });
    input.addEventListener("change", () => emit(this, "setting", { name, value: input.checked ? "on" : "off" }));
    this.#switches.set(name, input);
    const controls = h("span", { class: "menu-controls" }, besides, input);
    return h("div", { class: "menu-row" }, h("label", { for: input.id }, label), controls);
  }

  /** @param {import("./catalog.js").Words} words */
  #themeRow(words) {
    this.#theme.id = "setting-theme";
    for (const name of ["system", "light", "dark"])
      this.#theme.append(h("option", { value: name }, words.t(`menu.theme_${name}`)));
    this.#theme.addEventListener("change", () => emit(this, "setting", { name: "theme", value: this.#theme.value }));
    return h("div", { class: "menu-row" }, h("label", { for: "setting-theme" }, words.t("menu.theme")), this.#theme);
  }

  /** @param {import("./catalog.js").Words} words */
  #languageRow(words) {
    const select = h(
      "select",
      { id: "setting-language" },
      h("option", { value: "en", lang: "en", selected: words.locale === "en" }, "English"),
      h("option", { value: "zh-hans", lang: "zh-Hans", selected: words.locale !== "en" }, "简体中文"),
    );
    select.addEventListener("change", () => emit(this, "language", { language: select.value }));
    return h("div", { class: "menu-row" }, h("label", { for: select.id }, words.t("menu.language")), select);
  }

  /**
   * @param {string} label
   * @param {string} iconName
   * @param {() => void} press
   * @param {string} [key]
   */
  #item(label, iconName, press, key) {
    const item = h(
      "button",
      { type: "button", class: "item" },
      icon(iconName),
      h("span", {}, label),
      key && h("kbd", { "aria-hidden": "true" }, key),
    );
    item.addEventListener("click", () => {
      this.hidePopover();
      press();
    });
    return item;
  }

  /** @param {import("./catalog.js").Words} words */
  #adminLink(words) {
    const { admin } = document.body.dataset;
    return admin
      ? [h("a", { class: "button item", href: admin }, icon("external"), h("span", {}, words.t("menu.admin")))]
      : [];
  }
}
