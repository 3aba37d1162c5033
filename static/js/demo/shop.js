// @ts-check
// The demo's log-in switch. A real shop calls identify() with what its own server signed for its customer.

/** @typedef {{open(): void, identify(token: () => Promise<string>): void, logout(): void}} ChatApi */

const KEY = "lantern:customer";
const chat = () => /** @type {Window & {chatsvc?: ChatApi}} */ (window).chatsvc;
const choices = /** @type {HTMLInputElement[]} */ ([...document.querySelectorAll("input[name=customer]")]);
const hint = document.getElementById("hint");

/** @param {string} customer */
async function token(customer) {
  const answer = await fetch(`/demo/identity?customer=${encodeURIComponent(customer)}`);
  if (!answer.ok) throw new Error(`the demo signed nothing: ${answer.status}`);
  return (await answer.json()).identity;
}

/** @param {string} customer */
function say(customer) {
  const choice = choices.find((one) => one.value === customer) ?? choices[0];
  choice.checked = true;
  if (hint) hint.textContent = choice.dataset.hint ?? "";
}

// As with a shop's cookie, every tab of this browser is the same customer.
const known = () => localStorage.getItem(KEY) ?? "";

/** @param {string} customer */
function become(customer) {
  say(customer);
  if (customer === "") chat()?.logout();
  else chat()?.identify(() => token(customer));
}

const before = known();
say(before);
if (before !== "") {
  if (chat()) become(before);
  else document.addEventListener("chatsvc:ready", () => become(known()), { once: true });
}
for (const choice of choices) {
  choice.addEventListener("change", () => {
    localStorage.setItem(KEY, choice.value);
    become(choice.value);
  });
}
window.addEventListener("storage", ({ key }) => {
  if (key === KEY) become(known());
});
document.getElementById("ask")?.addEventListener("click", () => chat()?.open());
