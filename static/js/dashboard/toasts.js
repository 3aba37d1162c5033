// @ts-check
/** Short messages at the lower edge: what happened, and how to undo it. */

import { icon } from "./icons.js";
import { button, emit, h } from "./dom.js";

const SHOWN_MS = 6_000;
const UNDO_MS = 10_000;
const AT_MOST = 3;

/** Emits `verb` (detail: { verb, conversation }) when a message is undone. */
export class ToastStack extends HTMLElement {
  connectedCallback() {
    this.setAttribute("role", "region");
    this.setAttribute("aria-live", "polite");
  }

  /**
   * @param {import("./desk.js").Notice} notice
   * @param {import("./catalog.js").Words} words
   */
  show(notice, words) {
    this.setAttribute("aria-label", words.t("toast.label"));
    const toast = h(
      "div",
      { class: "toast", role: notice.tone === "bad" ? "alert" : null },
      notice.tone && icon(notice.tone === "bad" ? "alert" : "check"),
      h("span", {}, textOf(notice, words)),
      this.#undo(notice, words, () => toast.remove()),
      button({ label: words.t("toast.dismiss"), icon: "close", iconOnly: true }, () => toast.remove()),
    );
    if (notice.conversation) toast.dataset.conversation = notice.conversation;
    this.append(toast);
    while (this.childElementCount > AT_MOST) this.firstElementChild?.remove();
    stay(toast, notice.again ? UNDO_MS : SHOWN_MS);
  }

  /** What was said of a conversation is true no more, nor can it be undone. @param {string} conversation */
  forget(conversation) {
    for (const toast of this.querySelectorAll(":scope > [data-conversation]")) {
      if (/** @type {HTMLElement} */ (toast).dataset.conversation === conversation) toast.remove();
    }
  }

  /**
   * @param {import("./desk.js").Notice} notice
   * @param {import("./catalog.js").Words} words
   * @param {() => void} done
   */
  #undo({ again, conversation }, words, done) {
    if (!again) return null;
    return button({ label: words.t("toast.undo"), className: "undo" }, () => {
      done();
      emit(this, "verb", { verb: again, conversation });
    });
  }
}

/**
 * @param {import("./desk.js").Notice} notice
 * @param {import("./catalog.js").Words} words
 */
function textOf({ key, values = {} }, words) {
  if (key !== "toast.refused") return words.t(key, values);
  const reason = words.has(`error.${values.reason}`) ? `error.${values.reason}` : "error.unknown";
  return words.t(key, { verb: words.t(`conversation.${values.verb}`), reason: words.t(reason) });
}

/**
 * Goes after a while, but not under the pointer or while it holds the focus.
 * @param {HTMLElement} toast
 * @param {number} ms
 */
function stay(toast, ms) {
  setTimeout(() => {
    if (toast.matches(":hover, :focus-within")) stay(toast, ms);
    else toast.remove();
  }, ms);
}
