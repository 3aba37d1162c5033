// @ts-check
/** Dialogs: a question before something is lost, and the sheet of keys. The browser returns the focus. */

import { button, h } from "./dom.js";
import { letterOf } from "./keys.js";

/** @typedef {import("./catalog.js").Words} Words */

/**
 * Asks before something is lost. Resolves to whether to go on; Escape means no.
 * @param {{ title: string, body: string, go: string, stay: string }} texts
 * @returns {Promise<boolean>}
 */
export function confirmLoss({ title, body, go, stay }) {
  const keep = button({ label: stay, className: "primary" }, () => dialog.close());
  keep.autofocus = true; // the harmless answer is the near one
  const dialog = h(
    "dialog",
    { "aria-labelledby": "ask-title", "aria-describedby": "ask-body" },
    h("h2", { id: "ask-title" }, title),
    h("p", { id: "ask-body" }, body),
    h(
      "div",
      { class: "actions" },
      button({ label: go }, () => dialog.close("go")),
      keep,
    ),
  );
  return shown(dialog).then((answer) => answer === "go");
}

/** @type {readonly [string, readonly (readonly [string, readonly string[]])[]][]} */
const SHEET = [
  [
    "conversation",
    [
      ["take", [letterOf("take")]],
      ["hand_back", [letterOf("hand_back")]],
      ["resolve", [letterOf("resolve")]],
      ["reopen", [letterOf("reopen")]],
      ["reply", [letterOf("reply")]],
      ["send", ["Enter"]],
      ["newline", ["Shift", "Enter"]],
    ],
  ],
  [
    "list",
    [
      ["next", [letterOf("next"), "↓"]],
      ["previous", [letterOf("previous"), "↑"]],
      ["open", ["Enter"]],
      ["filter", [letterOf("filter")]],
      ["filters", ["1", "…", "5"]],
    ],
  ],
  [
    "general",
    [
      ["context", [letterOf("context")]],
      ["presence", [letterOf("presence")]],
      ["sound", [letterOf("sound")]],
      ["help", [letterOf("help")]],
      ["back", ["Esc"]],
    ],
  ],
];

/** @param {Words} words */
export function showKeys(words) {
  const sections = SHEET.map(([section, entries]) =>
    h(
      "section",
      {},
      h("h3", {}, words.t(`keys.${section}`)),
      h(
        "dl",
        {},
        ...entries.map(([name, keys]) =>
          h("div", {}, h("dt", {}, words.t(`keys.${name}`)), h("dd", {}, ...keys.map((key) => h("kbd", {}, key)))),
        ),
      ),
    ),
  );
  const dialog = h(
    "dialog",
    { class: "sheet", "aria-labelledby": "keys-title" },
    h(
      "header",
      {},
      h("h2", { id: "keys-title" }, words.t("keys.title")),
      button({ label: words.t("keys.close"), icon: "close", className: "quiet", iconOnly: true }, () => dialog.close()),
    ),
    h("p", {}, words.t("keys.hint")),
    h("div", { class: "columns" }, ...sections),
  );
  return shown(dialog);
}

/**
 * @param {HTMLDialogElement} dialog
 * @returns {Promise<string>} what it was closed with
 */
function shown(dialog) {
  document.body.append(dialog);
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // the backdrop
  });
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue);
    });
  });
}
