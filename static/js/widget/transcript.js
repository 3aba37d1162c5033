// @ts-check
// A conversation as a text file, to be read on any later day. `transcript` is pure; `download` is not.

import { fate } from "./layout.js";
import { plain } from "../wire/markdown.js";

/** @typedef {import("./layout.js").ThreadRow} ThreadRow */
/** @typedef {import("./words.js").Words} Words */

/**
 * @param {ThreadRow[]} rows
 * @param {{title: string, words: Words, you: string}} about
 */
export function transcript(rows, { title, words, you }) {
  const lines = [title, ""];
  for (const row of rows) {
    if (row.type === "day") lines.push("", `— ${words.date(row.at)} —`, "");
    if (row.type === "system") lines.push(`— ${words.say(row.word, row.values)}`);
    if (row.type !== "bubble") continue;
    const mine = row.author === "customer";
    const text = (mine ? row.text : plain(row.text)).replaceAll("\n", "\n    ");
    const unsent = row.id === null ? "" : ` (${words.say("not_sent")})`;
    lines.push(`${words.time(row.at)}  ${mine ? you : row.name}${unsent}`, `    ${text}`);
    const ended = fate(row, words);
    if (ended !== null) lines.push(`    (${ended})`);
    if (row.sources.length > 0) lines.push(`    [${row.sources.map((source) => source.title).join(", ")}]`);
  }
  return `${lines.join("\n")}\n`;
}

/** @param {string} name @param {string} text */
export function download(name, text) {
  const url = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/plain;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
