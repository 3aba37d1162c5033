// @ts-check
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { Words } from "../../static/js/dashboard/catalog.js";
import { commandFor } from "../../static/js/dashboard/keys.js";
import { hue, initials } from "../../static/js/dashboard/people.js";
import { layout } from "../../static/js/dashboard/waterfall.js";

const FOLDER = new URL("../../static/js/dashboard/", import.meta.url);
/** @param {string} name */
const read = (name) => JSON.parse(readFileSync(new URL(`locale/${name}.json`, FOLDER), "utf8"));
const catalogs = { en: read("en"), "zh-Hans": read("zh-hans") };

/** @param {import("../../static/js/dashboard/catalog.js").Catalog} catalog */
function* entries(catalog) {
  for (const [section, names] of Object.entries(catalog))
    for (const [name, entry] of Object.entries(names)) yield /** @type {const} */ ([`${section}.${name}`, entry]);
}

/** @param {import("../../static/js/dashboard/catalog.js").Entry} entry */
const holes = (entry) => new Set((typeof entry === "string" ? entry : entry.other).match(/\{\w+\}/g));

test("both languages say the same things with the same values", () => {
  const english = new Map(entries(catalogs.en));
  const chinese = new Map(entries(catalogs["zh-Hans"]));
  assert.deepEqual([...chinese.keys()].sort(), [...english.keys()].sort());
  for (const [key, entry] of english)
    assert.deepEqual(holes(/** @type {string} */ (chinese.get(key))), holes(entry), key);
});

test("every text that the code names exists", () => {
  const words = new Words("en", catalogs.en);
  const sections = Object.keys(catalogs.en).join("|");
  const literal = new RegExp(`(?<!type: |[!=]== )"((?:${sections})\\.[a-z_]+)"`, "g");
  for (const file of readdirSync(FOLDER).filter((name) => name.endsWith(".js"))) {
    for (const [, key] of readFileSync(new URL(file, FOLDER), "utf8").matchAll(literal))
      assert.ok(words.has(key), `${file} names ${key}`);
  }
});

test("plural forms follow the language", () => {
  const english = new Words("en", catalogs.en);
  const chinese = new Words("zh-Hans", catalogs["zh-Hans"]);
  assert.equal(english.t("list.unread", { count: 1 }), "1 unread message");
  assert.equal(english.t("list.unread", { count: 1200 }), "1,200 unread messages");
  assert.equal(chinese.t("list.unread", { count: 1 }), "1 条未读消息");
});

test("a value is put in as it is, whatever it holds", () => {
  assert.equal(
    new Words("en", { a: { b: "{name} waits" } }).t("a.b", { name: "{count} $& <b>" }),
    "{count} $& <b> waits",
  );
});

test("a key that does not exist shows itself", () => {
  const words = new Words("en", catalogs.en);
  for (const key of ["no.such", "fact.constructor", "attribute.city.old", "plain"]) {
    assert.equal(words.has(key), false, key);
    assert.equal(words.t(key), key);
  }
});

test("a language is named in the reader's, and what is none stays as it is", () => {
  const english = new Words("en", catalogs.en);
  assert.equal(english.language("zh-Hans"), "Simplified Chinese");
  assert.equal(new Words("zh-Hans", catalogs["zh-Hans"]).language("en"), "英语");
  for (const other of ["Klingon spoken at home", "", "q!"]) assert.equal(english.language(other), other);
});

const reading = { typing: false, modal: false, inList: false, letters: true };

test("letters are commands while nobody types", () => {
  assert.deepEqual(
    ["t", "B", "e", "/", "?", "3", "x"].map((key) => commandFor({ key }, reading)),
    ["take", "hand_back", "resolve", "filter", "help", "filter_3", null],
  );
});

test("while somebody types only Escape is a command", () => {
  const typing = { ...reading, typing: true };
  assert.deepEqual(
    ["t", "/", "?", "j", "Escape"].map((key) => commandFor({ key }, typing)),
    [null, null, null, null, "back"],
  );
});

test("keys with modifiers, in a dialog or inside a composition belong to others", () => {
  assert.equal(commandFor({ key: "t", ctrlKey: true }, reading), null);
  assert.equal(commandFor({ key: "t", metaKey: true }, reading), null);
  assert.equal(commandFor({ key: "t", isComposing: true }, reading), null);
  assert.equal(commandFor({ key: "Escape" }, { ...reading, modal: true }), null);
});

test("arrows move in the list only, and go on working with letters off", () => {
  const off = { ...reading, inList: true, letters: false };
  assert.equal(commandFor({ key: "ArrowDown" }, off), "next");
  assert.equal(commandFor({ key: "ArrowDown" }, reading), null);
  assert.equal(commandFor({ key: "j" }, off), null);
});

test("initials stand for any name", () => {
  assert.deepEqual(["Mia Chen", "王小明", "Anna von der Heide", "", "  ", "👩‍🚀 Zoe"].map(initials), [
    "MC",
    "王",
    "AH",
    "?",
    "?",
    "👩Z",
  ]);
  assert.equal(hue("Mia Chen"), hue("Mia Chen"));
});

test("bars stand where their stages ran", () => {
  const stages = [
    { name: "rules", start_ms: 0, ms: 50, note: "" },
    { name: "model", start_ms: 50, ms: 150, note: "" },
  ];
  assert.deepEqual(
    layout(stages).bars.map(({ start, size }) => [start, size]),
    [
      [0, 25],
      [25, 75],
    ],
  );
  assert.deepEqual(layout([]), { total_ms: 0, bars: [] });
});
