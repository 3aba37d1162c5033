// @ts-check
// What is written goes to the server before it is sent, and the widget says so. Loaded only where the site wants it,
// behind the widget itself.

import { h } from "./dom.js";
import { DraftSender } from "./draft-sender.js";

/** @typedef {HTMLElement & {chat: import("./chat.js").Chat}} App */
/** @typedef {import("./composer.js").ChatComposer} Composer */

/**
 * Only the assistant prepares: while a person is asked or answers, nothing is sent and nothing is said.
 * @param {import("./chat.js").Chat} chat
 * @param {Composer} composer
 */
function follow(chat, composer) {
  const notice = h("span", { class: "counter", id: "drafts" });
  const sender = new DraftSender((text, number) => chat.tell("draft", { text, number }));
  let composing = false;
  const prepares = () => chat.assistant && chat.line.owner.kind === "assistant";
  const written = () => {
    if (!composing && prepares()) sender.written(composer.draft);
    else sender.stop();
  };
  const draw = () => {
    notice.hidden = !prepares();
    notice.textContent = composer.words.say("drafts_sent");
  };
  composer.querySelector(".foot")?.append(notice);
  composer.querySelector("textarea")?.setAttribute("aria-describedby", "counter drafts");
  composer.addEventListener("say", () => sender.sent());
  composer.addEventListener("draft", written);
  // The letters of an unfinished composition are no words yet.
  composer.addEventListener("compositionstart", () => { composing = true; });
  composer.addEventListener("compositionend", () => { composing = false; written(); });
  chat.addEventListener("change", draw);
  draw();
}

const app = /** @type {App} */ (document.querySelector("chat-app"));
follow(app.chat, /** @type {Composer} */ (app.querySelector("chat-composer")));
