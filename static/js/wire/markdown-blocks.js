// @ts-check
// The lines of a message → blocks, one line after the other, in time linear in their number. Pure.
// CommonMark's rules with tables; no raw HTML, images, reference links, setext headings or indented code.
// A fence that is still open is code to the end; every other open construct is text until it is closed.

import { inlines } from "./markdown-inlines.js";

/** @typedef {import("./markdown-inlines.js").Node} Node */
/** @typedef {import("./markdown-inlines.js").Element} Element */
/** What further lines may continue: a quote, or an item with the columns its content is indented by.
 * @typedef {{children: Node[], list: Element | null, indent: number}} Container */
/** The block being read, the last of the innermost container. `align` is a table's, `fence` of code.
 * @typedef {{tag: "p" | "table" | "pre", lines: string[], head: string, align: string[], fence: string, indent: number}} Leaf */

const MAX_NESTING = 8;

const FENCE = /^ *(?:(`{3,})[^`]*|(~{3,}).*)$/;
const HEADING = /^ *(#{1,6})(?:[ \t]+(.*))?$/;
const CLOSING_HASHES = /(?:^|[ \t])#+[ \t]*$/;
const RULE = /^ *([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const QUOTE = /^ *> ?/;
const ITEM = /^ *([-*+]|(\d{1,9})[.)])(?=[ \t]|$)/;
const DELIMITERS = /^ *\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

/** @param {string} source @returns {Node[]} */
export function parse(source) {
  const lines = source.replace(/\r\n?/g, "\n").replaceAll("\0", "\ufffd").replace(/\n$/, "").split("\n");
  const reader = new Reader();
  for (const line of lines) reader.line(line);
  return reader.end();
}

class Reader {
  /** @type {Node[]} */
  #root = [];
  /** Outermost first. @type {Container[]} */
  #open = [];
  /** @type {Leaf | null} */
  #leaf = null;
  #blankBefore = false;

  /** @param {string} given */
  line(given) {
    // A tab is an indent, except in code that stands in no list.
    const verbatim = this.#leaf?.tag === "pre" && this.#open.length === 0;
    let rest = verbatim ? given : given.replace(/^[ \t]+/, (lead) => lead.replaceAll("\t", "    "));
    let depth = 0;
    for (; depth < this.#open.length; depth += 1) {
      const inner = this.#continued(this.#open[depth], rest);
      if (inner === null) break;
      rest = inner;
    }
    if (depth < this.#open.length) {
      if (this.#inParagraph && !isBlank(rest) && (columns(rest) > 3 || !this.#begins(rest))) return this.#goOn(rest);
      this.#close(depth);
    }
    if (this.#leaf?.tag === "pre") return this.#code(this.#leaf, rest);
    this.#content(...this.#entered(rest));
  }

  end() {
    this.#close(0);
    return this.#root;
  }

  get #inParagraph() {
    return this.#leaf?.tag === "p";
  }

  /** What is left of the line inside the container; null where the line is outside of it. @param {Container} container @param {string} rest */
  #continued({ children, list, indent }, rest) {
    if (list === null) return QUOTE.test(rest) ? rest.replace(QUOTE, "") : null;
    // An item may begin with one empty line.
    if (isBlank(rest)) return children.length > 0 || this.#leaf !== null ? "" : null;
    return columns(rest) >= indent ? rest.slice(indent) : null;
  }

  /** Opens the quotes and items that begin here. @param {string} line @returns {[string, boolean]} the rest, and whether any did */
  #entered(line) {
    let rest = line;
    let any = false;
    while (this.#open.length < MAX_NESTING && !this.#isContinuation(rest)) {
      const item = itemAt(rest, this.#inParagraph);
      if (!item && !QUOTE.test(rest)) break;
      this.#finish();
      rest = item ? this.#openItem(rest, item) : this.#openQuote(rest);
      any = true;
    }
    return [rest, any];
  }

  /** @param {string} rest */
  #openQuote(rest) {
    const children = this.#add("blockquote");
    this.#open.push({ children, list: null, indent: 0 });
    return rest.replace(QUOTE, "");
  }

  /** @param {string} rest @param {RegExpExecArray} item */
  #openItem(rest, [whole, sign, number]) {
    const list = this.#list(sign.slice(-1), number);
    const content = rest.slice(whole.length).replace("\t", " ");
    const gap = columns(content);
    const inner = content.slice(isBlank(content) || gap > 4 ? 1 : gap);
    /** @type {Node[]} */
    const children = [];
    list.children.push({ tag: "li", children });
    this.#open.push({ children, list, indent: whole.length + Math.max(1, content.length - inner.length) });
    return inner;
  }

  /** The list that goes on, or a new one. @param {string} mark @param {string | undefined} number */
  #list(mark, number) {
    const last = /** @type {Element | undefined} */ (this.#children.at(-1));
    if (last?.mark === mark) {
      if (this.#blankBefore) last.tight = false;
      this.#blankBefore = false;
      return last;
    }
    const start = Number(number ?? 1);
    /** @type {Element} */
    const list = { tag: number ? "ol" : "ul", mark, tight: true, children: [], attributes: start === 1 ? {} : { start: String(start) } };
    this.#loosen();
    this.#children.push(list);
    return list;
  }

  /** What the innermost container holds. */
  get #children() {
    return this.#open.at(-1)?.children ?? this.#root;
  }

  /** Ends the containers from `depth` on. @param {number} depth */
  #close(depth) {
    this.#finish();
    this.#open.length = depth;
  }

  /** @param {string} rest @param {boolean} entered */
  #content(rest, entered) {
    if (isBlank(rest)) {
      this.#finish();
      this.#blankBefore = !entered && this.#open.at(-1)?.list !== null;
      return;
    }
    const fence = FENCE.exec(rest);
    const heading = HEADING.exec(rest);
    if (this.#isContinuation(rest)) this.#goOn(rest);
    else if (this.#turnsIntoTable(rest)) return;
    else if (fence) this.#begin({ tag: "pre", fence: fence[1] ?? fence[2], indent: columns(rest) });
    // A message is never the page's outline: its headings start low.
    else if (heading) this.#add(`h${Math.min(6, heading[1].length + 2)}`, inlines((heading[2] ?? "").replace(CLOSING_HASHES, "").trim()));
    else if (RULE.test(rest)) this.#add("hr");
    else this.#goOn(rest);
  }

  /** @param {Leaf} leaf @param {string} rest */
  #code({ lines, fence, indent }, rest) {
    const text = rest.trim();
    if (text.length >= fence.length && text === fence[0].repeat(text.length)) return this.#finish();
    lines.push(rest.slice(Math.min(indent, columns(rest))));
  }

  /** A further line of the paragraph or table, or the first of a paragraph. @param {string} rest */
  #goOn(rest) {
    if (this.#leaf === null) this.#begin({ tag: "p" });
    this.#leaf?.lines.push(rest);
  }

  /** Whether the line says that the one above it is the head of a table. @param {string} rest */
  #turnsIntoTable(rest) {
    const lines = this.#inParagraph && this.#leaf ? this.#leaf.lines : [""];
    const head = lines[lines.length - 1];
    const align = cells(rest);
    if (!head.includes("|") || rest.trim().length < 2 || !DELIMITERS.test(rest) || cells(head).length !== align.length) return false;
    lines.pop();
    this.#begin({ tag: "table", head, align });
    return true;
  }

  /** Far to the right, a line after a paragraph's line goes on with it whatever it holds. @param {string} rest */
  #isContinuation(rest) {
    return this.#inParagraph && columns(rest) > 3;
  }

  /** Whether another block begins with this line. @param {string} rest */
  #begins(rest) {
    if (FENCE.test(rest) || HEADING.test(rest) || RULE.test(rest)) return true;
    return this.#open.length < MAX_NESTING && (QUOTE.test(rest) || itemAt(rest, false) !== null);
  }

  /** @param {Pick<Leaf, "tag"> & Partial<Leaf>} leaf */
  #begin(leaf) {
    this.#finish();
    this.#loosen();
    this.#leaf = { lines: [], head: "", align: [], fence: "", indent: 0, ...leaf };
  }

  /** @param {string} tag @param {Node[]} [children] */
  #add(tag, children = []) {
    this.#finish();
    this.#loosen();
    this.#children.push({ tag, children });
    return children;
  }

  /** An empty line between two blocks of an item sets its list apart. */
  #loosen() {
    const list = this.#open.at(-1)?.list;
    if (list && this.#blankBefore && this.#children.length > 0) list.tight = false;
    this.#blankBefore = false;
  }

  /** Ends the block being read. */
  #finish() {
    const leaf = this.#leaf;
    this.#leaf = null;
    const text = leaf?.lines.join("\n") ?? "";
    if (leaf?.tag === "pre") this.#children.push({ tag: "pre", children: [{ tag: "code", children: [text] }] });
    else if (leaf?.tag === "table") this.#children.push(table(leaf));
    else if (text !== "") this.#children.push({ tag: "p", children: inlines(text.trim()) });
  }
}

/** @param {string} line */
function isBlank(line) {
  return line.trim() === "";
}

/** How far a line is indented. @param {string} line */
function columns(line) {
  return line.search(/[^ ]|$/);
}

/** In a paragraph only what is surely meant as a list begins one. @param {string} rest @param {boolean} inParagraph */
function itemAt(rest, inParagraph) {
  const item = RULE.test(rest) ? null : ITEM.exec(rest);
  if (!item || !inParagraph) return item;
  return isBlank(rest.slice(item[0].length)) || Number(item[2] ?? 1) !== 1 ? null : item;
}

/** @param {Leaf} leaf @returns {Element} */
function table({ head, align, lines }) {
  /** @param {string} tag @param {string} line @returns {Element} */
  const row = (tag, line) => {
    const given = cells(line);
    const children = align.map((one, index) => ({ tag, children: inlines(given[index] ?? ""), attributes: alignment(one) }));
    return { tag: "tr", children };
  };
  const children = [{ tag: "thead", children: [row("th", head)] }];
  if (lines.length > 0) children.push({ tag: "tbody", children: lines.map((line) => row("td", line)) });
  return { tag: "div", attributes: { class: "table" }, children: [{ tag: "table", children }] };
}

/** @param {string} cell @returns {Record<string, string>} */
function alignment(cell) {
  const start = cell.startsWith(":");
  const end = cell.endsWith(":");
  return start || end ? { class: start && end ? "align-center" : `align-${end ? "end" : "start"}` } : {};
}

/** @param {string} line */
function cells(line) {
  const inner = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}
