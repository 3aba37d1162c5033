// @ts-check
/** Building and updating elements. Text only ever becomes text nodes; nothing here parses markup. */

import { icon } from "./icons.js";
import { hue, initials } from "./people.js";

/** @typedef {Node|string|null|undefined|false} Child */

/**
 * An element with attributes and children. An attribute of `true` is present without a value; `false`, `null`
 * and `undefined` leave it out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, string|number|boolean|null|undefined>} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value);
  for (const child of children) if (child) element.append(child);
  return element;
}

/**
 * @param {Element} element
 * @param {string} name
 * @param {string|number|boolean|null|undefined} value
 */
export function setAttribute(element, name, value) {
  if (value === false || value === null || value === undefined) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value === true ? "" : value)) {
    element.setAttribute(name, String(value === true ? "" : value));
  }
}

/**
 * Changes the text only where it differs, so that a selection survives.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Makes `nodes` the children of `parent`, moving no node that already stands right: focus and selection stay.
 * @param {Element} parent
 * @param {readonly Node[]} nodes
 */
export function arrange(parent, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...parent.childNodes]) if (!wanted.has(child)) child.remove();
  let before = parent.firstChild;
  for (const node of nodes) {
    if (node === before) before = before.nextSibling;
    else parent.insertBefore(node, before);
  }
}

/**
 * @param {Element} element
 * @param {string} type
 * @param {object} [detail]
 */
export function emit(element, type, detail = {}) {
  element.dispatchEvent(new CustomEvent(type, { detail, bubbles: true }));
}

/**
 * A button with an icon, a label and the key that does the same.
 * @param {{ label: string, icon?: string, key?: string, className?: string, iconOnly?: boolean }} look
 * @param {() => void} press
 */
export function button({ label, icon: name, key, className = "", iconOnly = false }, press) {
  const element = h(
    "button",
    {
      type: "button",
      class: `${className} ${iconOnly ? "icon-only" : ""}`.trim() || null,
      "aria-label": iconOnly && label,
    },
    name && icon(name),
    !iconOnly && h("span", {}, label),
    key && !iconOnly && h("kbd", { "aria-hidden": "true" }, key),
  );
  if (key) element.setAttribute("aria-keyshortcuts", key);
  if (iconOnly) element.title = key ? `${label} (${key})` : label;
  element.addEventListener("click", press);
  return element;
}

/**
 * @param {string} name
 * @param {string} [className]
 */
export function avatar(name, className = "") {
  return h(
    "span",
    { class: `avatar ${className}`.trim(), "data-hue": hue(name), "aria-hidden": "true" },
    initials(name),
  );
}

/**
 * @param {string} label
 * @param {boolean} [worded] whether the label is shown beside the mark
 */
export function verifiedMark(label, worded = false) {
  const text = h("span", { class: worded ? null : "visually-hidden" }, label);
  return h("span", { class: "verified", title: label }, icon("check"), text);
}

/**
 * @param {string} iconName
 * @param {string} title
 * @param {string} body
 * @param {HTMLElement} [action]
 */
export function blank(iconName, title, body, action) {
  return h("div", { class: "blank" }, icon(iconName), h("strong", {}, title), h("p", {}, body), action);
}

/**
 * Placeholder rows of a picture and two lines.
 * @param {string} label
 * @param {number} count
 */
export function bones(label, count) {
  const rows = Array.from({ length: count }, () => h("span", { class: "bone" }, h("i"), h("b"), h("b")));
  return h("div", { class: "bones", role: "status", "aria-label": label }, ...rows);
}
