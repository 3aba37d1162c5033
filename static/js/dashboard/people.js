// @ts-check
/** How a person is shown where there is no picture. Pure. */

const HUES = 6;

/**
 * One or two letters that stand for a name: first and last word, or the first sign of a name without spaces.
 * @param {string} name
 */
export function initials(name) {
  const words = name.trim().split(/\s+/u).filter(Boolean);
  if (words.length === 0) return "?";
  const first = [...words[0]][0];
  const last = words.length > 1 ? [...words[words.length - 1]][0] : "";
  return (first + last).toLocaleUpperCase();
}

/**
 * A number below 6 that stays the same for a name: which tint its avatar has.
 * @param {string} name
 */
export function hue(name) {
  let sum = 0;
  for (const sign of name) sum = (sum * 31 + (sign.codePointAt(0) ?? 0)) % 9973;
  return sum % HUES;
}
