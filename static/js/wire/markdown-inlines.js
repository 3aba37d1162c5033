// @ts-check
// The text of one block → its inline tree, in time linear in its length. Pure.
// CommonMark's rules, except: emphasis needs no space beside Chinese, Japanese and Korean; an address is a link
// without brackets; only what safeHref() opens is a link; entities and raw HTML are text.

/**
 * An element to be: only this folder's parsers name one. `mark` is what made it, `tight` a list without paragraphs.
 * @typedef {{tag: string, children: Node[], attributes?: Record<string, string>, mark?: string, tight?: boolean}} Element
 */
/** @typedef {string | Element} Node */
/**
 * A character (or two tildes) that may begin or end emphasis. `at` is its offset, `run` that of its first neighbour.
 * @typedef {{mark: string, at: number, run: number, length: number, open: boolean, close: boolean}} Mark
 */
/** @typedef {Node | Mark} Token */

/** A block longer than this is shown as it was written. */
const MAX_LENGTH = 8_192;
const MAX_NESTING = 16;

const PLAIN = /(?:(?!https?:\/\/)[^\\`*_~[\]<\n])+/iy;
const ESCAPED = /\\([!-/:-@[-`{-~])/y;
const BREAK = /\\?\n[ \t]*/y;
const AUTOLINK = /<((?:https?:\/\/|mailto:)[^\s<>]+)>/iy;
const MAILBOX = /<([^\s<>@:]+@[^\s<>@]+)>/y;
const ADDRESS = /https?:\/\/[^\s<>"'`[\]\\\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef]+/iy;
// Of an address with parentheses one level is enough; each alternative begins with another character.
const TARGET = new RegExp(
  String.raw`\(\s*(?:<([^<>\n]*)>|((?:D|\(D*\))*))(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)`.replaceAll(
    "D", String.raw`(?:\\[!-/:-@[-\x60{-~]|\\(?![!-/:-@[-\x60{-~])|[^\s()<>\\])`,
  ), "y",
);
const OPENED = /^(?=https?:\/\/[^/?#\\|^%(){}[\]]+(?:[/?#]|$)|mailto:.)[^\s<>"`\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]+$/iu;

const SPACE = /\s/;
const PUNCTUATION = /[\p{P}\p{S}]/u;
const CJK = /[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\u{20000}-\u{3ffff}]/u;
const LETTER = /[\p{L}\p{N}]/u;

/** @param {string} text @returns {Node[]} */
export function inlines(text) {
  if (text.length > MAX_LENGTH) return text.split(/(\n)/).map((part) => (part === "\n" ? lineBreak() : part));
  /** @type {Token[]} */
  const tokens = [];
  /** Where a label may have begun. @type {number[]} */
  const brackets = [];
  let at = 0;
  while (at < text.length) {
    const link = text[at] === "]" && brackets.length > 0 ? target(text, at + 1, brackets) : null;
    if (link) {
      // A link holds no other link: an address in its label is text, and an outer bracket stays one.
      const label = tokens.splice(link.label).slice(1).flatMap(unlinked);
      tokens.push(linkTo(link.href, folded(label)));
      brackets.length = 0;
      at = link.end;
      continue;
    }
    if (text[at] === "[") brackets.push(tokens.length);
    const [found, end] = tokensAt(text, at);
    const before = tokens[tokens.length - 1];
    if (isElement(found[0], "br") && typeof before === "string") tokens[tokens.length - 1] = before.trimEnd();
    tokens.push(...found);
    at = end;
  }
  return folded(tokens);
}

/** The address where it is one we open: https, http or mail, without characters that hide where it leads. @param {string} address @returns {string | null} */
export function safeHref(address) {
  return OPENED.test(address) ? address : null;
}

/** What begins at `at`, and where it ends. @param {string} text @param {number} at @returns {[Token[], number]} */
function tokensAt(text, at) {
  const plain = match(PLAIN, text, at);
  if (plain) return [plain, at + plain[0].length];
  switch (text[at]) {
    case "\n": case "\\": return escape(text, at);
    case "`": return codeSpan(text, at);
    case "*": case "_": case "~": return run(text, at);
    case "<": return autolink(text, at);
    case "h": case "H": return address(text, at);
    default: return [[text[at]], at + 1];
  }
}

/** @param {string} text @param {number} at @returns {[Token[], number]} */
function escape(text, at) {
  const line = match(BREAK, text, at);
  if (line) return [[lineBreak()], at + line[0].length];
  // A backslash before anything else stays, and what follows it begins nothing.
  return [[match(ESCAPED, text, at)?.[1] ?? text.slice(at, at + 2)], at + 2];
}

/** A run without an equal run after it is literal as a whole. @param {string} text @param {number} at @returns {[Token[], number]} */
function codeSpan(text, at) {
  const ticks = text.slice(at, runEnd(text, at));
  let end = at + ticks.length;
  for (let from = text.indexOf(ticks, end); from >= 0; from = text.indexOf(ticks, end)) {
    end = runEnd(text, from);
    if (end - from !== ticks.length) continue;
    const inner = text.slice(at + ticks.length, from).replaceAll("\n", " ");
    const padded = inner.startsWith(" ") && inner.endsWith(" ") && inner.trim() !== "";
    return [[{ tag: "code", children: [padded ? inner.slice(1, -1) : inner] }], end];
  }
  return [[ticks], at + ticks.length];
}

/** @param {string} text @param {number} at @returns {[Token[], number]} */
function autolink(text, at) {
  const [whole, inner] = match(AUTOLINK, text, at) ?? match(MAILBOX, text, at) ?? ["<", ""];
  const href = safeHref(AUTOLINK.lastIndex > 0 ? inner : `mailto:${inner}`);
  return [[href === null ? whole : linkTo(href, [inner])], at + whole.length];
}

/** @param {string} text @param {number} at @returns {[Token[], number]} */
function address(text, at) {
  const before = text.charAt(at - 1);
  const found = LETTER.test(before) && !CJK.test(before) ? null : match(ADDRESS, text, at);
  const href = found && safeHref(withoutEnd(found[0]));
  return href ? [[linkTo(href, [href])], at + href.length] : [[text[at]], at + 1];
}

/** Marks, full stops and closing brackets at the end of an address belong to the sentence. @param {string} found */
function withoutEnd(found) {
  let end = found.length;
  const opened = found.split("(").length - found.split(")").length;
  for (let spare = -opened; end > 0 && ".,;:!?*_~|]})".includes(found[end - 1]); end -= 1) {
    if (found[end - 1] === ")" && (spare -= 1) < 0) break;
  }
  return found.slice(0, end);
}

/** @param {Token} token @returns {Token[]} */
function unlinked(token) {
  return isElement(token, "a") ? token.children : [token];
}

/** @param {string} href @param {Node[]} children @returns {Element} */
function linkTo(href, children) {
  return { tag: "a", attributes: { href, target: "_blank", rel: "noopener noreferrer nofollow" }, children };
}

/** @returns {Element} */
function lineBreak() {
  return { tag: "br", children: [] };
}

/** @param {Token | undefined} token @param {string} tag @returns {token is Element} */
function isElement(token, tag) {
  return typeof token === "object" && "tag" in token && token.tag === tag;
}

/**
 * What a label's end leads to; takes the label's beginning from `brackets` whether or not it is a link.
 * @param {string} text @param {number} at @param {number[]} brackets
 */
function target(text, at, brackets) {
  const label = /** @type {number} */ (brackets.pop());
  const found = match(TARGET, text, at);
  const href = found && safeHref((found[1] ?? found[2]).replace(/\\([!-/:-@[-`{-~])/g, "$1"));
  return found && href !== null ? { label, href, end: at + found[0].length } : null;
}

/** @param {string} text @param {number} at @returns {[Token[], number]} */
function run(text, at) {
  const end = runEnd(text, at);
  const length = end - at;
  if (text[at] === "~" && length !== 2) return [[text.slice(at, end)], end];
  const mark = text[at] === "~" ? "~~" : text[at];
  // Whole characters, also where they are two code units; the ends of a text count as blanks.
  const [before = " "] = [...text.slice(Math.max(0, at - 2), at)].slice(-1);
  const [after = " "] = text.slice(end, end + 2);
  const sides = flanks(before, after, mark === "_");
  /** @type {Mark[]} */
  const marks = [];
  for (let each = at; each < end; each += mark.length) marks.push({ mark, at: each, run: at, length, ...sides });
  return [marks, end];
}

/**
 * Whether a run may begin or end emphasis. An underscore inside a word does neither.
 * @param {string} before @param {string} after @param {boolean} isUnderscore
 */
function flanks(before, after, isUnderscore) {
  const left = isInside(after, before);
  const right = isInside(before, after);
  if (!isUnderscore) return { open: left, close: right };
  return { open: left && (!right || PUNCTUATION.test(before)), close: right && (!left || PUNCTUATION.test(after)) };
}

/** Whether `inner` can be what is emphasized, with `outer` on the other side of the run. @param {string} inner @param {string} outer */
function isInside(inner, outer) {
  if (SPACE.test(inner)) return false;
  return !PUNCTUATION.test(inner) || [SPACE, PUNCTUATION, CJK].some((sort) => sort.test(outer)) || CJK.test(inner);
}

/** Pairs the marks and makes a tree of the list. @param {Token[]} tokens @returns {Node[]} */
function folded(tokens) {
  const closers = paired(tokens);
  /** @type {{closer: Mark | null, children: Node[]}[]} */
  const open = [{ closer: null, children: [] }];
  for (const token of tokens) {
    const here = open[open.length - 1];
    const closer = isMark(token) && closers.get(token);
    if (token === here.closer) {
      open.pop();
      open[open.length - 1].children.push(emphasized(here.closer.mark, here.children));
    } else if (closer && open.length <= MAX_NESTING) open.push({ closer, children: [] });
    else append(here.children, isMark(token) ? token.mark : token);
  }
  return open[0].children;
}

/** @param {string} mark @param {Node[]} children @returns {Element} */
function emphasized(mark, children) {
  if (mark === "~~") return { tag: "s", children };
  const [only] = children;
  if (children.length === 1 && isElement(only, "em") && only.mark === mark) return { tag: "strong", children: only.children };
  return { tag: "em", mark, children };
}

/** @param {Node[]} list @param {Node} node */
function append(list, node) {
  const last = list[list.length - 1];
  if (typeof node === "string" && typeof last === "string") list[list.length - 1] = last + node;
  else list.push(node);
}

/** CommonMark's matching of marks, each of which is its own. @param {Token[]} tokens @returns {Map<Mark, Mark>} */
function paired(tokens) {
  /** @type {Map<Mark, Mark>} */
  const closers = new Map();
  /** @type {Mark[]} */
  const openers = [];
  /** Below these offsets such a closer has found nothing. @type {Map<string, number>} */
  const floors = new Map();
  for (const mark of tokens.filter(isMark)) {
    const index = mark.close ? openerOf(mark, openers, floors) : -1;
    if (index >= 0) {
      closers.set(openers[index], mark);
      openers.length = index;
    } else if (mark.open) openers.push(mark);
  }
  return closers;
}

/** @param {Mark} closer @param {Mark[]} openers @param {Map<string, number>} floors @returns {number} -1 if there is none */
function openerOf(closer, openers, floors) {
  const sort = `${closer.mark}${closer.open}${closer.length % 3}`;
  const floor = floors.get(sort) ?? 0;
  for (let index = openers.length - 1; index >= 0 && openers[index].at >= floor; index -= 1) {
    const opener = openers[index];
    const odd = (opener.close || closer.open) && (opener.length + closer.length) % 3 === 0 && closer.length % 3 !== 0;
    if (opener.mark === closer.mark && opener.at < closer.run && !odd) return index;
  }
  floors.set(sort, closer.run);
  return -1;
}

/** @param {Token} token @returns {token is Mark} */
function isMark(token) {
  return typeof token === "object" && "run" in token;
}

/** @param {RegExp} sticky @param {string} text @param {number} at */
function match(sticky, text, at) {
  sticky.lastIndex = at;
  return sticky.exec(text);
}

/** @param {string} text @param {number} at */
function runEnd(text, at) {
  let end = at;
  while (text[end] === text[at]) end += 1;
  return end;
}
