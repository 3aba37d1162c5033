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
      const bar = stage.ms > 0 ? h("span", { class: "bar" }) : null;
      bar?.style.setProperty("--start", String(start));
      bar?.style.setProperty("--size", String(size));
      const name = words.has(`stage.${stage.name}`) ? words.t(`stage.${stage.name}`) : stage.name;
      return h(
        "div",
        {},
        h("dt", {}, name),
        h("dd", { class: "track", "aria-hidden": "true" }, ...(bar ? [bar] : [])),
        h("dd", { class: "ms" }, words.t("context.ms", { ms: rounded(stage.ms) })),
      );
    }),
  );
}

/**
 * What the customer saw and what we added, in words; "" where nothing was said.
 * @param {{ painted_ms: number|null, added_ms: number|null, stages: readonly Stage[] }} trace
 * @param {Words} words
 */
export function figures({ painted_ms, added_ms, stages }, words) {
  const first = stages.find(({ name }) => name === "first_frame");
  const seen =
    painted_ms !== null
      ? words.t("trace.seen", { ms: rounded(painted_ms) })
      : first && first.ms > 0
        ? words.t("trace.sent", { ms: rounded(first.start_ms + first.ms) })
        : "";
  return [seen, added_ms === null ? "" : words.t("trace.added", { ms: rounded(added_ms) })].filter(Boolean).join(" · ");
}

/**
 * The figures of an answer, with its bars behind them.
 * @param {HTMLElement} details
 * @param {import("./traces.js").Trace} trace
 * @param {Words} words
 */
export function fillTrace(details, trace, words) {
  details.replaceChildren(
    h("summary", {}, figures(trace, words) || words.t("trace.stages")),
    bars(trace.stages, words),
    markChips(trace.marks, words),
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
