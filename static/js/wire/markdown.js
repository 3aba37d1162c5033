// @ts-check
// Safe Markdown for messages: text → tree (pure) → elements made by createElement. Never innerHTML.
// The subset of the server's renderer: no raw HTML, no images, no reference links, no setext headings.
// An open construct stays literal until it is closed, so streamed text never changes its meaning backwards.

/**
 * @typedef {{kind: "text", text: string} | {kind: "code", text: string} | {kind: "break"}
 *   | {kind: "strong" | "em" | "strike", children: Inline[]} | {kind: "link", href: string, children: Inline[]}} Inline
 */
/**
 * @typedef {{kind: "paragraph", children: Inline[]} | {kind: "heading", level: number, children: Inline[]}
 *   | {kind: "code", language: string, text: string} | {kind: "rule"} | {kind: "quote", blocks: Block[]}
 *   | {kind: "list", ordered: boolean, start: number, tight: boolean, items: Block[][]}
 *   | {kind: "table", align: string[], head: Inline[][], rows: Inline[][][]}} Block
 */

const MAX_NESTING = 8;
// Inline parsing is quadratic on hostile input: a block longer than this is shown as plain text.
const MAX_INLINE = 8_192;

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`\s]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const QUOTE = /^ {0,3}>[ ]?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( +|$)(.*)$/;
const DELIMITER_ROW = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

/** @param {string} source @returns {Block[]} */
export function parse(source) {
  return blocksOf(source.replace(/\r\n?/g, "\n").split("\n"), 0);
}

/**
 * Shows `source` in `container`, keeping the elements of blocks that did not change.
 * @param {Element} container
 * @param {string} source
 */
export function show(container, source) {
  const blocks = parse(source);
  const keys = blocks.map((block) => JSON.stringify(block));
  const before = shown.get(container) ?? [];
  let same = 0;
  while (same < keys.length && keys[same] === before[same] && same < container.childNodes.length) same += 1;
  while (container.childNodes.length > same) container.lastChild?.remove();
  container.append(...blocks.slice(same).map(blockElement));
  shown.set(container, keys);
}

/** @type {WeakMap<Element, string[]>} */
const shown = new WeakMap();

/** What the message says without its marks, for previews and screen readers. @param {string} source @returns {string} */
export function plain(source) {
  return parse(source).map(blockText).join("\n");
}

// ---------------------------------------------------------------- blocks

/** @param {string[]} lines @param {number} depth @returns {Block[]} */
function blocksOf(lines, depth) {
  /** @type {Block[]} */
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    if (isBlank(lines[at])) {
      at += 1;
      continue;
    }
    const [block, next] = blockAt(lines, at, depth);
    blocks.push(block);
    at = next;
  }
  return blocks;
}

/** @param {string[]} lines @param {number} at @param {number} depth @returns {[Block, number]} */
function blockAt(lines, at, depth) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) return fenced(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading) return [{ kind: "heading", level: heading[1].length, children: inlines(heading[2] ?? "") }, at + 1];
  if (RULE.test(line)) return [{ kind: "rule" }, at + 1];
  if (depth < MAX_NESTING && QUOTE.test(line)) return quoted(lines, at, depth);
  if (depth < MAX_NESTING && ITEM.test(line)) return listed(lines, at, depth);
  if (isTable(lines, at)) return tabled(lines, at);
  return paragraph(lines, at, depth);
}

/** @param {string[]} lines @param {number} at @param {RegExpExecArray} fence @returns {[Block, number]} */
function fenced(lines, at, fence) {
  const mark = fence[1];
  const close = new RegExp(`^ {0,3}\\${mark[0]}{${mark.length},}[ \\t]*$`);
  let end = at + 1;
  while (end < lines.length && !close.test(lines[end])) end += 1;
  const text = lines.slice(at + 1, end).join("\n");
  return [{ kind: "code", language: fence[2], text }, end + 1];
}

/** @param {string[]} lines @param {number} at @param {number} depth @returns {[Block, number]} */
function quoted(lines, at, depth) {
  /** @type {string[]} */
  const inner = [];
  let end = at;
  while (end < lines.length && !isBlank(lines[end])) {
    const marked = QUOTE.test(lines[end]);
    if (!marked && interrupts(lines, end, depth)) break;
    inner.push(lines[end].replace(QUOTE, ""));
    end += 1;
  }
  return [{ kind: "quote", blocks: blocksOf(inner, depth + 1) }, end];
}

/** @param {string[]} lines @param {number} at @param {number} depth @returns {[Block, number]} */
function listed(lines, at, depth) {
  const first = /** @type {RegExpExecArray} */ (ITEM.exec(lines[at]));
  const sort = first[2].slice(-1);
  const ordered = /\d/.test(first[2]);
  /** @type {Block[][]} */
  const items = [];
  let tight = true;
  let end = at;
  while (end < lines.length) {
    const item = ITEM.exec(lines[end]);
    if (!item || item[2].slice(-1) !== sort || RULE.test(lines[end])) break;
    const [inner, next, spaced] = itemLines(lines, end, item, depth);
    items.push(blocksOf(inner, depth + 1));
    const follows = ITEM.exec(lines[next] ?? "");
    if (spaced.inside || (spaced.after && follows && follows[2].slice(-1) === sort)) tight = false;
    end = next;
  }
  return [{ kind: "list", ordered, start: ordered ? Number.parseInt(first[2], 10) : 1, tight, items }, end];
}

/**
 * The lines of one item without their indent, where the next thing begins, and where blank lines stood.
 * @param {string[]} lines @param {number} at @param {RegExpExecArray} item @param {number} depth
 * @returns {[string[], number, {inside: boolean, after: boolean}]}
 */
function itemLines(lines, at, item, depth) {
  const gapWidth = item[3].length > 4 || item[3].length === 0 ? 1 : item[3].length;
  const indent = item[1].length + item[2].length + gapWidth;
  const inner = [lines[at].slice(Math.min(indent, lines[at].length))];
  let end = at + 1;
  let blanks = 0;
  let inside = false;
  while (end < lines.length) {
    const line = lines[end];
    const width = line.length - line.trimStart().length;
    if (isBlank(line)) blanks += 1;
    else if (width >= indent) {
      if (blanks > 0) inside = true;
      inner.push(...Array(blanks).fill(""), line.slice(indent));
      blanks = 0;
    } else if (blanks > 0 || interrupts(lines, end, depth)) break;
    else inner.push(line.trimStart());
    end += 1;
  }
  return [inner, end, { inside, after: blanks > 0 }];
}

/** @param {string[]} lines @param {number} at @param {number} depth @returns {[Block, number]} */
function paragraph(lines, at, depth) {
  let end = at + 1;
  while (end < lines.length && !isBlank(lines[end]) && !interrupts(lines, end, depth)) end += 1;
  const text = lines.slice(at, end).map((line) => line.trimStart()).join("\n").trimEnd();
  return [{ kind: "paragraph", children: inlines(text) }, end];
}

/** Whether a line ends the paragraph above it. @param {string[]} lines @param {number} at @param {number} depth */
function interrupts(lines, at, depth) {
  const line = lines[at];
  if (FENCE.test(line) || HEADING.test(line) || RULE.test(line) || isTable(lines, at)) return true;
  if (depth >= MAX_NESTING) return false;
  const item = ITEM.exec(line);
  return QUOTE.test(line) || (item !== null && item[4] !== "" && (!/\d/.test(item[2]) || Number.parseInt(item[2], 10) === 1 || depth > 0));
}

/** @param {string[]} lines @param {number} at */
function isTable(lines, at) {
  const under = lines[at + 1];
  if (under === undefined || !lines[at].includes("|") || !under.includes("-") || !DELIMITER_ROW.test(under)) return false;
  return cells(lines[at]).length === cells(under).length;
}

/** @param {string[]} lines @param {number} at @returns {[Block, number]} */
function tabled(lines, at) {
  const align = cells(lines[at + 1]).map((cell) => {
    const start = cell.startsWith(":");
    if (cell.endsWith(":")) return start ? "center" : "end";
    return start ? "start" : "";
  });
  const width = align.length;
  const head = cells(lines[at]).map(inlines);
  /** @type {Inline[][][]} */
  const body = [];
  let end = at + 2;
  while (end < lines.length && !isBlank(lines[end]) && lines[end].includes("|")) {
    const given = cells(lines[end]).slice(0, width).map(inlines);
    body.push([...given, ...Array(width - given.length).fill([])]);
    end += 1;
  }
  return [{ kind: "table", align, head, rows: body }, end];
}

/** @param {string} line */
function cells(line) {
  const inner = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

/** @param {string | undefined} line */
function isBlank(line) {
  return line === undefined || line.trim() === "";
}

// ---------------------------------------------------------------- inlines

const ESCAPED = /^\\([!-/:-@[-`{-~])/;
const AUTOLINK = /^<((?:https?:\/\/|mailto:)[^\s<>]+)>/i;
const BARE_LINK = /^https?:\/\/[^\s<>"'`\u3000-\u303f\uff00-\uffef]+/i;
const WORD = /[\p{L}\p{N}]/u;

/** @param {string} text @returns {Inline[]} */
function inlines(text) {
  if (text.length > MAX_INLINE) return [{ kind: "text", text }];
  return inlinesOf(text, 0, false);
}

/** @param {string} text @param {number} depth @param {boolean} inLink @returns {Inline[]} */
function inlinesOf(text, depth, inLink) {
  /** @type {Inline[]} */
  const found = [];
  let literal = "";
  let at = 0;
  while (at < text.length) {
    const read = depth > MAX_NESTING ? null : inlineAt(text, at, depth, inLink);
    if (read === null) {
      literal += text[at];
      at += 1;
      continue;
    }
    const [inline, next] = read;
    at = next;
    if (inline.kind === "text") literal += inline.text;
    else {
      if (inline.kind === "break") literal = literal.replace(/ +$/, "");
      if (literal !== "") found.push({ kind: "text", text: literal });
      literal = "";
      found.push(inline);
    }
  }
  if (literal !== "") found.push({ kind: "text", text: literal });
  return found;
}

/** @param {string} text @param {number} at @param {number} depth @param {boolean} inLink @returns {[Inline, number] | null} */
function inlineAt(text, at, depth, inLink) {
  switch (text[at]) {
    case "\n": return [{ kind: "break" }, at + 1];
    case "\\": return escaped(text, at);
    case "`": return codeSpan(text, at);
    case "*": case "_": case "~": return emphasis(text, at, depth, inLink);
    case "[": return inLink ? null : link(text, at, depth);
    case "<": return inLink ? null : autolink(text, at);
    case "h": case "H": return inLink || WORD.test(text[at - 1] ?? "") ? null : bareLink(text, at);
    default: return null;
  }
}

/** @param {string} text @param {number} at @returns {[Inline, number] | null} */
function escaped(text, at) {
  if (text[at + 1] === "\n") return [{ kind: "break" }, at + 2];
  const match = ESCAPED.exec(text.slice(at, at + 2));
  return match && [{ kind: "text", text: match[1] }, at + 2];
}

/** @param {string} text @param {number} at @returns {[Inline, number] | null} */
function codeSpan(text, at) {
  const ticks = /^`+/.exec(text.slice(at))?.[0] ?? "`";
  let from = at + ticks.length;
  for (;;) {
    const end = text.indexOf(ticks, from);
    // An unclosed run is literal as a whole.
    if (end < 0) return [{ kind: "text", text: ticks }, at + ticks.length];
    let run = end;
    while (text[run] === "`") run += 1;
    if (run - end === ticks.length) {
      const inner = text.slice(at + ticks.length, end).replaceAll("\n", " ");
      const padded = inner.startsWith(" ") && inner.endsWith(" ") && inner.trim() !== "";
      return [{ kind: "code", text: padded ? inner.slice(1, -1) : inner }, run];
    }
    from = run;
  }
}

/** @param {string} text @param {number} at @param {number} depth @param {boolean} inLink @returns {[Inline, number] | null} */
function emphasis(text, at, depth, inLink) {
  const mark = text[at];
  let run = at;
  while (text[run] === mark) run += 1;
  const count = run - at;
  const literal = /** @type {[Inline, number]} */ ([{ kind: "text", text: text.slice(at, run) }, run]);
  if (/\s/.test(text[run] ?? " ")) return literal;
  if (mark === "_" && WORD.test(text[at - 1] ?? "")) return literal;
  if (mark === "~" && count !== 2) return literal;
  for (const width of mark === "~" ? [2] : count >= 3 ? [3, 2, 1] : count === 2 ? [2, 1] : [1]) {
    const end = closing(text, run, mark, width);
    if (end < 0) continue;
    const start = run - width;
    if (start > at) return [{ kind: "text", text: text.slice(at, start) }, start];
    return [emphasized(text.slice(run, end), mark, width, depth, inLink), end + width];
  }
  return literal;
}

/** @param {string} inner @param {string} mark @param {number} width @param {number} depth @param {boolean} inLink @returns {Inline} */
function emphasized(inner, mark, width, depth, inLink) {
  const children = inlinesOf(inner, depth + 1, inLink);
  if (mark === "~") return { kind: "strike", children };
  if (width === 3) return { kind: "em", children: [{ kind: "strong", children }] };
  return { kind: width === 2 ? "strong" : "em", children };
}

/**
 * Where a run of `mark` closes what opened before `from`; -1 if it is not closed. Code spans are stepped over.
 * @param {string} text @param {number} from @param {string} mark @param {number} width
 */
function closing(text, from, mark, width) {
  let at = from;
  while (at < text.length) {
    if (text[at] === "\\") at += 2;
    else if (text[at] === "`") at = codeSpan(text, at)?.[1] ?? at + 1;
    else if (text[at] !== mark) at += 1;
    else {
      let run = at;
      while (text[run] === mark) run += 1;
      const closes = !/\s/.test(text[at - 1]) && !(mark === "_" && WORD.test(text[run] ?? ""));
      const length = run - at;
      const opens = !/\s/.test(text[run] ?? " ") && /\s/.test(text[at - 1]);
      if (closes && !opens && (length === width || (width < 3 && length >= 3))) return width === 1 && length > 1 ? run - 1 : at + (length - width > 0 && width === 2 ? length - 2 : 0);
      at = run;
    }
  }
  return -1;
}

/** @param {string} text @param {number} at @param {number} depth @returns {[Inline, number] | null} */
function link(text, at, depth) {
  const middle = bracketEnd(text, at);
  if (middle < 0 || text[middle + 1] !== "(") return null;
  const target = /^\(\s*(?:<([^<>\n]*)>|([^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*))(?:\s+(?:"[^"\n]*"|'[^'\n]*'))?\s*\)/.exec(text.slice(middle + 1));
  if (!target) return null;
  const href = safeHref(target[1] ?? target[2] ?? "");
  const end = middle + 1 + target[0].length;
  const label = text.slice(at + 1, middle);
  // A target we refuse leaves the author's text, so that nothing is hidden behind a label.
  if (href === null) return [{ kind: "text", text: text.slice(at, end) }, end];
  return [{ kind: "link", href, children: inlinesOf(label, depth + 1, true) }, end];
}

/** @param {string} text @param {number} at */
function bracketEnd(text, at) {
  let open = 0;
  for (let index = at; index < text.length; index += 1) {
    const character = text[index];
    if (character === "\\") index += 1;
    else if (character === "[") open += 1;
    else if (character === "]" && (open -= 1) === 0) return index;
  }
  return -1;
}

/** @param {string} text @param {number} at @returns {[Inline, number] | null} */
function autolink(text, at) {
  const match = AUTOLINK.exec(text.slice(at));
  const href = match && safeHref(match[1]);
  if (!match || href === null) return null;
  return [{ kind: "link", href, children: [{ kind: "text", text: match[1] }] }, at + match[0].length];
}

/** @param {string} text @param {number} at @returns {[Inline, number] | null} */
function bareLink(text, at) {
  const match = BARE_LINK.exec(text.slice(at));
  if (!match) return null;
  const address = match[0].replace(/[*_~|]+$/, "").replace(/[.,;:!?)\]}]+$/, "");
  const href = safeHref(address);
  return href === null ? null : [{ kind: "link", href, children: [{ kind: "text", text: address }] }, at + address.length];
}

/** The address where it is one we open: https, http or mail. @param {string} address @returns {string | null} */
export function safeHref(address) {
  if (!/^(?:https?:\/\/|mailto:)/i.test(address)) return null;
  try {
    const url = new URL(address);
    return ["https:", "http:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

// ---------------------------------------------------------------- elements

/** @param {Block} block @returns {Element} */
function blockElement(block) {
  switch (block.kind) {
    case "paragraph": return element("p", block.children.map(inlineNode));
    // A message is never the page's outline: its headings start low.
    case "heading": return element(`h${Math.min(6, block.level + 2)}`, block.children.map(inlineNode));
    case "code": return element("pre", [element("code", [block.text])]);
    case "rule": return element("hr", []);
    case "quote": return element("blockquote", block.blocks.map(blockElement));
    case "list": return listElement(block);
    case "table": return tableElement(block);
  }
}

/** @param {Extract<Block, {kind: "list"}>} list */
function listElement(list) {
  const items = list.items.map((blocks) => element("li", blocks.flatMap((block) => (
    list.tight && block.kind === "paragraph" ? block.children.map(inlineNode) : [blockElement(block)]
  ))));
  const made = element(list.ordered ? "ol" : "ul", items);
  if (list.ordered && list.start !== 1) made.setAttribute("start", String(list.start));
  return made;
}

/** @param {Extract<Block, {kind: "table"}>} table */
function tableElement(table) {
  /** @param {string} name @param {Inline[][]} row */
  const row = (name, row) => element("tr", row.map((cell, index) => {
    const made = element(name, cell.map(inlineNode));
    if (table.align[index]) made.className = `align-${table.align[index]}`;
    return made;
  }));
  const made = element("table", [
    element("thead", [row("th", table.head)]), element("tbody", table.rows.map((cells) => row("td", cells))),
  ]);
  const frame = element("div", [made]);
  frame.className = "table";
  return frame;
}

/** @param {Inline} inline @returns {Node} */
function inlineNode(inline) {
  switch (inline.kind) {
    case "text": return document.createTextNode(inline.text);
    case "code": return element("code", [inline.text]);
    case "break": return element("br", []);
    case "strong": return element("strong", inline.children.map(inlineNode));
    case "em": return element("em", inline.children.map(inlineNode));
    case "strike": return element("s", inline.children.map(inlineNode));
    case "link": return linkElement(inline);
  }
}

/** @param {Extract<Inline, {kind: "link"}>} inline */
function linkElement(inline) {
  const made = element("a", inline.children.map(inlineNode));
  made.setAttribute("href", inline.href);
  made.setAttribute("target", "_blank");
  made.setAttribute("rel", "noopener noreferrer nofollow");
  return made;
}

/** @param {string} name @param {(Node | string)[]} children @returns {HTMLElement} */
function element(name, children) {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}

// ---------------------------------------------------------------- plain text

/** @param {Block} block @returns {string} */
function blockText(block) {
  switch (block.kind) {
    case "paragraph": case "heading": return block.children.map(inlineText).join("");
    case "code": return block.text;
    case "rule": return "";
    case "quote": return block.blocks.map(blockText).join("\n");
    case "list": return block.items.map((item, index) => (
      `${block.ordered ? `${block.start + index}.` : "•"} ${item.map(blockText).join("\n")}`
    )).join("\n");
    case "table": return [block.head, ...block.rows].map((row) => (
      row.map((cell) => cell.map(inlineText).join("")).join(" | ")
    )).join("\n");
  }
}

/** @param {Inline} inline @returns {string} */
function inlineText(inline) {
  if (inline.kind === "break") return "\n";
  return "text" in inline ? inline.text : inline.children.map(inlineText).join("");
}
