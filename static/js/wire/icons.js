// @ts-check
// One set of icons: 20 px grid, 1.5 px strokes, round ends. Always beside a label or inside a labelled control.

const SVG = "http://www.w3.org/2000/svg";

/** Path data by name: what the widget shows. @type {Readonly<Record<string, string>>} */
export const PATHS = {
  alert: "M10 6.5v4M10 13.4v.1M8.7 3.2 2.4 14.2a1.5 1.5 0 0 0 1.3 2.3h12.6a1.5 1.5 0 0 0 1.3-2.3L11.3 3.2a1.5 1.5 0 0 0-2.6 0Z",
  arrowDown: "M10 4v12M5 11l5 5 5-5",
  article: "M5 3h7l3.5 3.5V17H5zM11.5 3v4h4M7.8 10.5h5M7.8 13.5h5",
  back: "M12 5l-5 5 5 5",
  check: "M4 10.5l4 4 8-9",
  chevronRight: "M8 5.5l4.5 4.5L8 14.5",
  clock: "M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM10 6v4l2.7 1.6",
  close: "M5 5l10 10M15 5L5 15",
  compose: "M9 4H5.5C4.7 4 4 4.7 4 5.5v9c0 .8.7 1.5 1.5 1.5h9c.8 0 1.5-.7 1.5-1.5V11M8 12l.5-2.5L14.7 3.3l2 2L10.5 11.5z",
  download: "M10 3.5v9M6 9l4 4 4-4M3.5 16.5h13",
  globe: "M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM3.2 10h13.6M10 3c2 2 2.8 4.4 2.8 7S12 15 10 17c-2-2-2.8-4.4-2.8-7S8 5 10 3Z",
  history: "M3.5 10a6.5 6.5 0 1 0 2.2-4.9L3.5 7M3.5 3.5V7H7M10 6.5V10l2.5 1.5",
  more: "M5.2 10a.7.7 0 1 1-1.4 0 .7.7 0 0 1 1.4 0ZM10.7 10a.7.7 0 1 1-1.4 0 .7.7 0 0 1 1.4 0ZM16.2 10a.7.7 0 1 1-1.4 0 .7.7 0 0 1 1.4 0Z",
  people: "M7.5 9.5a2.7 2.7 0 1 0 0-5.5 2.7 2.7 0 0 0 0 5.5ZM2.5 15.8c.4-2.3 2.3-3.7 5-3.7s4.6 1.4 5 3.7M13 4.3a2.7 2.7 0 0 1 0 5M14.5 12.3c1.7.5 2.8 1.7 3 3.5",
  person: "M10 10a3.2 3.2 0 1 0 0-6.5A3.2 3.2 0 0 0 10 10ZM3.8 16.5c.6-2.7 3-4.3 6.2-4.3s5.6 1.6 6.2 4.3",
  send: "M10 16V4.5M5 9.3l5-5 5 5",
  soundOff: "M3.5 8v4h2.7l3.8 3.2V4.8L6.2 8zM13.5 8l4 4M17.5 8l-4 4",
  soundOn: "M3.5 8v4h2.7l3.8 3.2V4.8L6.2 8zM12.8 7.7a3.3 3.3 0 0 1 0 4.6M14.9 5.6a6.2 6.2 0 0 1 0 8.8",
  sparkle: "M9 3.5l1.5 4 4 1.5-4 1.5L9 14.5l-1.5-4-4-1.5 4-1.5zM15 12.5l.7 1.8 1.8.7-1.8.7-.7 1.8-.7-1.8-1.8-.7 1.8-.7z",
  stop: "M6 6h8v8H6z",
};

/** The icon as an SVG element, hidden from screen readers: the label is its neighbour's. @param {string} name */
export function icon(name) {
  const data = PATHS[name];
  if (data === undefined) throw new RangeError(`there is no icon ${name}`);
  return drawing(data);
}

/** @param {string} data  of a path @returns {SVGSVGElement} */
export function drawing(data) {
  const svg = document.createElementNS(SVG, "svg");
  for (const [attribute, value] of Object.entries({
    class: "icon", viewBox: "0 0 20 20", width: "20", height: "20", fill: "none", stroke: "currentColor",
    "stroke-width": "1.5", "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true",
    focusable: "false",
  })) svg.setAttribute(attribute, value);
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", data);
  svg.append(path);
  return svg;
}
