// @ts-check
/** The stages of an answer as horizontal bars. `layout` is pure; the rest builds elements. */

import { h } from "./dom.js";

/** @typedef {import("../wire/frames.js").Stage} Stage */
/** @typedef {import("./catalog.js").Words} Words */

/**
 * Where each bar stands, in percent of the whole, which is returned beside it.
 * @param {readonly Stage[]} stages
 * @returns {{ total_ms: number, bars: { stage: Stage, start: number, size: number }[] }}
 */
export function layout(stages) {
  const total_ms = Math.max(0, ...stages.map(({ start_ms, ms }) => start_ms + ms));
  const percent = (/** @type {number} */ ms) => (total_ms > 0 ? Math.round((ms / total_ms) * 1000) / 10 : 0);
  return {
    total_ms,
    bars: stages.map((stage) => ({ stage, start: percent(stage.start_ms), size: percent(stage.ms) })),
  };
}

/**
 * @param {readonly Stage[]} stages
 * @param {Words} words
 */
export function bars(stages, words) {
  return h(
    "dl",
    { class: "bars" },
    ...layout(stages).bars.map(({ stage, start, size }) => {
      const bar = h("span", { class: "bar" });
      bar.style.setProperty("--start", String(start));
      bar.style.setProperty("--size", String(size));
      const name = words.has(`stage.${stage.name}`) ? words.t(`stage.${stage.name}`) : stage.name;
      return h(
        "div",
        { title: stage.note ? `${name}: ${stage.note}` : null },
        h("dt", {}, name),
        h("dd", { class: "track", "aria-hidden": "true" }, bar),
        h("dd", { class: "ms" }, words.t("context.ms", { ms: rounded(stage.ms) })),
      );
    }),
  );
}

/**
 * What was warm: a filled dot and the word; cold: a hollow dot and the word.
 * @param {Readonly<Record<string, string>>} marks
 * @param {Words} words
 */
export function markChips(marks, words) {
  return h(
    "div",
    { class: "marks" },
    ...Object.entries(marks).map(([name, state]) => {
      const label = words.has(`stage.${name}`) ? words.t(`stage.${name}`) : name;
      const value = words.has(`mark.${state}`) ? words.t(`mark.${state}`) : state;
      return h("span", { class: `chip mark ${/^\w+$/.test(state) ? state : ""}` }, h("span", {}, `${label}: ${value}`));
    }),
  );
}

/** @param {number} ms */
export function rounded(ms) {
  return ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms);
}
