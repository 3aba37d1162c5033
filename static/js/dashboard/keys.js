// @ts-check
/** Which command a key press means. Pure: the shell hands in what it saw. */

/**
 * @typedef {"take"|"hand_back"|"resolve"|"reopen"|"reply"|"context"|"next"|"previous"|"filter"|"help"|"back"
 *   |"presence"|"sound"|"filter_1"|"filter_2"|"filter_3"|"filter_4"|"filter_5"} Command
 */
/** @typedef {{ key: string, ctrlKey?: boolean, metaKey?: boolean, altKey?: boolean, isComposing?: boolean }} Press */
/** @typedef {{ typing: boolean, modal: boolean, inList: boolean, letters: boolean }} Where */

/** Letters and signs, in the order of the key sheet. @type {readonly [Command, string][]} */
export const LETTERS = [
  ["take", "T"],
  ["hand_back", "B"],
  ["resolve", "E"],
  ["reopen", "O"],
  ["reply", "R"],
  ["next", "J"],
  ["previous", "K"],
  ["filter", "/"],
  ["context", "I"],
  ["presence", "A"],
  ["sound", "M"],
  ["help", "?"],
];

/**
 * The command of a key press, or null when the key belongs to whatever has the focus.
 * Nothing but Escape is ever taken from somebody who types; nothing at all from a dialog.
 * @param {Press} press
 * @param {Where} where
 * @returns {Command|null}
 */
export function commandFor(press, where) {
  if (where.modal || press.isComposing || press.ctrlKey || press.metaKey || press.altKey) return null;
  if (press.key === "Escape") return "back";
  if (where.typing) return null;
  if (where.inList && press.key === "ArrowDown") return "next";
  if (where.inList && press.key === "ArrowUp") return "previous";
  if (!where.letters) return null;
  if (/^[1-5]$/.test(press.key)) return /** @type {Command} */ (`filter_${press.key}`);
  return LETTERS.find(([, letter]) => letter === press.key.toUpperCase())?.[0] ?? null;
}

/** @param {Command} command */
export function letterOf(command) {
  return LETTERS.find(([name]) => name === command)?.[1] ?? "";
}
