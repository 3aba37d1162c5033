// @ts-check
// Safe Markdown for messages: tree → elements made by createElement, or plain text. Never innerHTML.
// tests/js/markdown.json fixes what this and the server's renderer (apps/conversations/markup.py) show.

import { parse } from "./markdown-blocks.js";

/** @typedef {import("./markdown-inlines.js").Node} Tree */

/** What each container shows, block by block. @type {WeakMap<Element, {key: string, shown: Node}[]>} */
const known = new WeakMap();

/**
 * Shows `source` in `container`, keeping the elements of blocks that did not change.
 * @param {Element} container
 * @param {string} source
 */
export function show(container, source) {
  const blocks = parse(source);
  const before = known.get(container) ?? [];
  const keys = blocks.map((block) => JSON.stringify(block));
  const changed = keys.findIndex((key, index) => before[index]?.key !== key || before[index].shown !== container.childNodes[index]);
  const kept = before.slice(0, changed < 0 ? keys.length : changed);
  while (container.childNodes.length > kept.length) container.lastChild?.remove();
  const added = blocks.slice(kept.length).map((block, index) => ({ key: keys[kept.length + index], shown: built(block) }));
  container.append(...added.map(({ shown }) => shown));
  known.set(container, kept.concat(added));
}

/** What the message says without its marks, for previews and screen readers. @param {string} source @returns {string} */
export function plain(source) {
  return parse(source).map(textOf).join("\n");
}

/** @param {Tree} tree @param {boolean} [tight]  whether it is an item whose paragraphs are only their text @returns {Node} */
function built(tree, tight) {
  if (typeof tree === "string") return document.createTextNode(tree);
  const element = document.createElement(tree.tag);
  for (const [name, value] of Object.entries(tree.attributes ?? {})) element.setAttribute(name, value);
  const children = tight ? tree.children.flatMap((child) => (typeof child !== "string" && child.tag === "p" ? child.children : [child])) : tree.children;
  element.append(...children.map((child) => built(child, tree.tight)));
  return element;
}

/** @param {Tree} tree @returns {string} */
function textOf(tree) {
  if (typeof tree === "string") return tree;
  const parts = tree.children.map(textOf);
  switch (tree.tag) {
    case "br": return "\n";
    case "ul": return parts.map((part) => `• ${part}`).join("\n");
    case "ol": return parts.map((part, index) => `${Number(tree.attributes?.start ?? 1) + index}. ${part}`).join("\n");
    case "tr": return parts.join(" | ");
    case "blockquote": case "li": case "table": case "tbody": return parts.join("\n");
    default: return parts.join("");
  }
}
