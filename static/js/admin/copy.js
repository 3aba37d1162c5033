// @ts-check
/** Buttons with `data-copy="#id"` put that element's text on the clipboard and say so. */

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.addEventListener("click", () => copy(/** @type {HTMLButtonElement} */ (button)));
}

/** @param {HTMLButtonElement} button */
async function copy(button) {
  const source = document.querySelector(button.dataset.copy ?? "");
  if (!source) return;
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(source.textContent ?? "");
    button.textContent = button.dataset.copied ?? label;
    setTimeout(() => (button.textContent = label), 2000);
  } catch {
    // No clipboard without TLS: select the text instead, so that one key copies it.
    getSelection()?.selectAllChildren(source);
  }
}
