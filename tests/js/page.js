// @ts-check
// As much of a browser's document as our modules build with, and its HTML as a browser would write it.

const VOID = new Set(["br", "hr"]);
/** @type {Record<string, string>} */
const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\u00a0": "&nbsp;" };

class Text {
  /** @param {string} data */
  constructor(data) {
    this.data = data;
    /** @type {Element | null} */
    this.parent = null;
  }

  remove() {
    if (this.parent) this.parent.childNodes = this.parent.childNodes.filter((child) => child !== this);
    this.parent = null;
  }

  get outerHTML() {
    return this.data.replace(/[&<>\u00a0]/g, (character) => ENTITIES[character]);
  }
}

class Element extends Text {
  /** @type {Text[]} */
  childNodes = [];
  /** @type {Map<string, string>} */
  attributes = new Map();

  /** @param {string} name */
  constructor(name) {
    super("");
    this.name = name;
  }

  /** @param {(Text | string)[]} children */
  append(...children) {
    for (const child of children) {
      const node = typeof child === "string" ? new Text(child) : child;
      node.remove();
      node.parent = this;
      this.childNodes.push(node);
    }
  }

  get lastChild() {
    return this.childNodes.at(-1) ?? null;
  }

  /** @param {string} name @param {string} value */
  setAttribute(name, value) {
    this.attributes.set(name, String(value));
  }

  /** @param {string} names */
  set className(names) {
    this.setAttribute("class", names);
  }

  get innerHTML() {
    return this.childNodes.map((child) => child.outerHTML).join("");
  }

  get outerHTML() {
    const attributes = [...this.attributes].map(([name, value]) => ` ${name}="${value.replace(/[&"\u00a0]/g, (character) => ENTITIES[character])}"`);
    const start = `<${this.name}${attributes.join("")}>`;
    return VOID.has(this.name) ? start : `${start}${this.innerHTML}</${this.name}>`;
  }

  /** Itself and every element below. @returns {Element[]} */
  get all() {
    return [this, ...this.childNodes.flatMap((child) => (child instanceof Element ? child.all : []))];
  }
}

/** Makes `document` what the modules under test find. */
export function openPage() {
  const document = {
    createElement: (/** @type {string} */ name) => new Element(name),
    createTextNode: (/** @type {string} */ data) => new Text(data),
  };
  Object.assign(globalThis, { document });
  return document;
}
