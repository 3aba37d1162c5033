// @ts-check
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { transcript } from "../../static/js/widget/transcript.js";
import { Words } from "../../static/js/widget/words.js";

const catalog = (/** @type {string} */ name) => JSON.parse(readFileSync(new URL(`../../static/js/widget/locale/${name}.json`, import.meta.url), "utf8"));
const words = (/** @type {string} */ locale) => new Words({ en: catalog("en"), zh: catalog("zh") }, locale);
const NOON = new Date(2026, 2, 5, 12).getTime();

/** @param {object} given */
const bubble = (given) => ({
  type: "bubble", key: "", author: "assistant", name: "Lumi", text: "", at: NOON, state: "complete", sources: [], live: null,
  delivery: "", error: null, id: null, cutBy: "", first: true, last: true, ...given,
});
const ROWS = /** @type {any} */ ([
  { type: "day", key: "d", at: NOON },
  bubble({ author: "customer", text: "Where is\nmy order?" }),
  bubble({ text: "It is **on", state: "stopped" }),
  { type: "system", key: "s", word: "asked_for_human", values: {} },
  bubble({ text: "Perhaps", state: "taken_over", cutBy: "Kim" }),
  { type: "system", key: "t", word: "joined", values: { name: "Kim" } },
  bubble({ author: "agent", name: "Kim", text: "Tomorrow.", sources: [{ title: "Shipping", url: "" }] }),
]);

test("a transcript says the date, who said what, and what happened beside", () => {
  const time = words("en").time(NOON);
  assert.deepEqual(transcript(ROWS, { title: "Shop", words: words("en"), you: "Mia" }).split("\n"), [
    "Shop", "", "", "— Thursday, March 5, 2026 —", "",
    `${time}  Mia`, "    Where is", "    my order?",
    `${time}  Lumi`, "    It is **on", "    (You stopped this answer.)",
    "— You asked for a person",
    `${time}  Lumi`, "    Perhaps", "    (Kim took over here.)",
    "— Kim joined the conversation",
    `${time}  Kim`, "    Tomorrow.", "    [Shipping]", "",
  ]);
});

test("a transcript in Chinese has a Chinese date", () => {
  assert.match(transcript(ROWS, { title: "Shop", words: words("zh"), you: "Mia" }), /— 2026年3月5日星期四 —/);
});
