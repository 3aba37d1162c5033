// @ts-check
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { safeHref } from "../../static/js/wire/markdown-inlines.js";
import { plain, show } from "../../static/js/wire/markdown.js";
import { openPage } from "./page.js";
import { generator } from "./random.js";

/** @typedef {{name: string, source: string, html: string}} Golden */
/** @type {{cases: Golden[], hostile: Golden[]}} */
const GOLDEN = JSON.parse(readFileSync(new URL("markdown.json", import.meta.url), "utf8"));
const SOURCES = [...GOLDEN.cases, ...GOLDEN.hostile].map(({ source }) => source);
const ELEMENTS = new Set("a blockquote br code div em h3 h4 h5 h6 hr li ol p pre s strong table tbody td th thead tr ul".split(" "));
const ATTRIBUTES = new Set(["a href", "a target", "a rel", "ol start", "div class", "th class", "td class"]);

const page = openPage();
const box = () => page.createElement("div");

/** @param {string} source @param {ReturnType<typeof box>} [into] */
function shown(source, into = box()) {
  show(/** @type {any} */ (into), source);
  return into;
}

/** @param {string} source */
function assertSafe(source) {
  for (const { name, attributes } of shown(source).all) {
    assert.ok(ELEMENTS.has(name), `${name} in ${source}`);
    for (const [attribute, value] of attributes) {
      assert.ok(ATTRIBUTES.has(`${name} ${attribute}`), `${name} ${attribute} in ${source}`);
      if (attribute === "href") assert.match(value, /^(?:https?:\/\/[^/]|mailto:)[^\s"<>]*$/i);
    }
  }
}

for (const { name, source, html } of GOLDEN.cases) {
  test(`${name}: is what the server shows`, () => assert.equal(shown(source).innerHTML, html));
}

test("hostile text is what the server shows", () => {
  for (const { source, html } of GOLDEN.hostile) assert.equal(shown(source).innerHTML, html);
});

test("whatever is written, and wherever it is cut, only harmless elements and links are made", () => {
  for (const source of SOURCES) for (let end = 0; end <= source.length; end += 1) assertSafe(source.slice(0, end));
});

test("pieces of everything, in any order, make only harmless elements and links", () => {
  const random = generator(3);
  const pieces = SOURCES.flatMap((source) => source.match(/[\s\S]{1,9}/gu) ?? []);
  for (let round = 0; round < 600; round += 1) assertSafe(Array.from({ length: 12 }, () => random.pick(pieces)).join(""));
});

test("text that streams in pieces of any size ends as the whole text does", () => {
  const random = generator(5);
  for (let round = 0; round < 120; round += 1) {
    const whole = Array.from({ length: 4 }, () => random.pick(SOURCES)).join(random.pick(["\n\n", "\n", " "]));
    const into = box();
    for (let end = 0; end < whole.length; end += 1 + random.below(12)) shown(whole.slice(0, end), into);
    assert.equal(shown(whole, into).innerHTML, shown(whole).innerHTML);
  }
});

test("what streams keeps the elements of blocks that did not change", () => {
  const into = shown("# One\n\ntwo");
  const [heading, paragraph] = into.childNodes;
  shown("# One\n\ntwo and a half\n\nthree", into);
  assert.equal(into.childNodes[0], heading);
  assert.notEqual(into.childNodes[1], paragraph);
  assert.equal(into.childNodes.length, 3);
  shown("# One", into);
  assert.deepEqual(into.childNodes, [heading]);
});

test("what something else has put into the container gives way", () => {
  const into = shown("one\n\ntwo");
  into.childNodes[0].remove();
  into.append("thinking");
  assert.equal(shown("one\n\ntwo\n\nthree", into).innerHTML, "<p>one</p><p>two</p><p>three</p>");
});

test("an answer keeps its meaning while it grows: an open mark is text until it is closed", () => {
  const steps = { "a *b": "<p>a *b</p>", "a *b*": "<p>a <em>b</em></p>", "a *b* [c](https://x.y": "<p>a <em>b</em> [c](<a", "```\nx": "<pre><code>x</code></pre>" };
  for (const [source, html] of Object.entries(steps)) assert.ok(shown(source).innerHTML.startsWith(html), source);
});

test("text made to be slow is read to its end and makes no more elements than it has characters", () => {
  const long = 40_000;
  for (const piece of [
    "*a ", "**a ", "_a_", "*_", "***", "~~a", "[", "[a](", "[](", "![[", "]", "`a", "`a``", "<", "<https://a", "\\", "> ", "- ",
    "1. ", "- a\n", "> a\n", "  - a\n", "|", "|a", "|a\n|-\n", "a|b\n-|-\n", "#", "# ", "# #", "```\n", "~~~a\n", "\n", " ", "\t", "- - ",
    "---\n", "https://a.b(", "https://a.b)", "a\n", "&amp;", "[a](<b", "[a](b 'c",
  ]) {
    for (const text of [`${piece.repeat(long / piece.length)}x`, piece.repeat(8_000 / piece.length)]) {
      assert.ok(shown(text).all.length <= text.length + 1, piece);
    }
  }
});

test("a block longer than any message is shown as it was written", () => {
  const line = `**${"a".repeat(4_200)}**`;
  assert.equal(shown(`${line}\n${line}`).innerHTML, `<p>${line}<br>${line}</p>`);
});

test("emphasis inside emphasis has an end", () => {
  const html = shown(`${"*a ".repeat(60)}b${"*".repeat(60)}`).innerHTML;
  assert.equal(html.split("<em>").length - 1, 16);
  assert.equal(html.replaceAll(/<[^>]+>/g, "").length, 60 * 4 + 1 - 32);
});

test("only addresses that we open are addresses", () => {
  for (const good of ["https://a.example", "HTTP://A.example/ä?b#c", "mailto:a@a.example", "https://a.example:8443/b"]) assert.equal(safeHref(good), good);
  for (const bad of ["", "a.example", "//a.example", "https://", "https:///b", "https://a b", "javascript:https://a.example", "https://a.example/\u202eb", "https://a|b", "mailto:", "\u0001https://a.example", " https://a.example"]) {
    assert.equal(safeHref(bad), null, bad);
  }
});

test("plain text keeps the words and leaves the marks", () => {
  assert.equal(plain("# Hi **you**\n\n> [a](https://b.example) `c`\n\n- d\n- e\n\n3. f\n\n| g | h |\n|---|---|\n| i | j |\n\n---\n```\nk\n```\nl  \nm"),
    "Hi you\na c\n• d\n• e\n3. f\ng | h\ni | j\n\nk\nl\nm");
});
