// @ts-check
// One set of icons: 20 px grid, 1.5 px strokes, round ends. Always beside a label or inside a labelled control.

const SVG = "http://www.w3.org/2000/svg";

/** Path data by name. @type {Readonly<Record<string, string>>} */
const PATHS = {
  alert: "M10 6.5v4M10 13.4v.1M8.7 3.2 2.4 14.2a1.5 1.5 0 0 0 1.3 2.3h12.6a1.5 1.5 0 0 0 1.3-2.3L11.3 3.2a1.5 1.5 0 0 0-2.6 0Z",
  archive: "M3 4.5h14v3H3zM4.2 7.5v7.3c0 .9.7 1.7 1.7 1.7h8.2c1 0 1.7-.8 1.7-1.7V7.5M8 10.7h4",
  arrowDown: "M10 4v12M5 11l5 5 5-5",
  arrowUp: "M10 16V4M5 9l5-5 5 5",
  article: "M5 3h7l3.5 3.5V17H5zM11.5 3v4h4M7.8 10.5h5M7.8 13.5h5",
  back: "M12 5l-5 5 5 5",
  bell: "M5.5 13.5V9a4.5 4.5 0 0 1 9 0v4.5l1.2 1.3H4.3zM8.5 17h3",
  bellOff: "M5.5 13.5V9c0-.8.2-1.5.5-2.1M8 5A4.5 4.5 0 0 1 14.5 9v3M4.3 14.8h10.2M8.5 17h3M3.5 3.5l13 13",
  chat: "M3 9.5C3 6 6 3.5 10 3.5s7 2.5 7 6-3 6-7 6c-.9 0-1.7-.1-2.5-.4L4 16.5l.9-3C3.7 12.5 3 11.1 3 9.5Z",
  check: "M4 10.5l4 4 8-9",
  chevronDown: "M5.5 8l4.5 4.5L14.5 8",
  chevronRight: "M8 5.5l4.5 4.5L8 14.5",
  clock: "M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM10 6v4l2.7 1.6",
  close: "M5 5l10 10M15 5L5 15",
  compose: "M9 4H5.5C4.7 4 4 4.7 4 5.5v9c0 .8.7 1.5 1.5 1.5h9c.8 0 1.5-.7 1.5-1.5V11M8 12l.5-2.5L14.7 3.3l2 2L10.5 11.5z",
  copy: "M7.5 7.5h9v9h-9zM12.5 7.5v-4h-9v9h4",
  download: "M10 3.5v9M6 9l4 4 4-4M3.5 16.5h13",
  external: "M8 4.5H4.5v11h11V12M11.5 3.5h5v5M16 4l-7 7",
  filter: "M3.5 5.5h13M6 10h8M8.5 14.5h3",
  globe: "M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM3.2 10h13.6M10 3c2 2 2.8 4.4 2.8 7S12 15 10 17c-2-2-2.8-4.4-2.8-7S8 5 10 3Z",
  handBack: "M8 5.5L4 9.5l4 4M4.5 9.5H12a4 4 0 0 1 4 4v1.5",
  history: "M3.5 10a6.5 6.5 0 1 0 2.2-4.9L3.5 7M3.5 3.5V7H7M10 6.5V10l2.5 1.5",
  inbox: "M3 11.5 5.2 4.5h9.6l2.2 7v4H3zM3 11.5h4c.2 1.5 1.4 2.5 3 2.5s2.8-1 3-2.5h4",
  lock: "M5 9h10v7.5H5zM7 9V6.5a3 3 0 0 1 6 0V9",
  logout: "M8 4H4.5v12H8M12.5 6.5 16 10l-3.5 3.5M15.5 10H8",
  mail: "M3 5h14v10.5H3zM3.5 5.5l6.5 5.5 6.5-5.5",
  more: "M5.2 10a.7.7 0 1 1-1.4 0 .7.7 0 0 1 1.4 0ZM10.7 10a.7.7 0 1 1-1.4 0 .7.7 0 0 1 1.4 0ZM16.2 10a.7.7 0 1 1-1.4 0 .7.7 0 0 1 1.4 0Z",
  note: "M4 3.5h12v9l-4 4H4zM16 12.5h-4v4M7 7.5h6M7 10.5h3",
  order: "M10 2.8 16.5 6.2v7.6L10 17.2l-6.5-3.4V6.2zM3.7 6.3 10 9.7l6.3-3.4M10 9.7v7.3M6.7 4.7l6.4 3.4",
  person: "M10 10a3.2 3.2 0 1 0 0-6.5A3.2 3.2 0 0 0 10 10ZM3.8 16.5c.6-2.7 3-4.3 6.2-4.3s5.6 1.6 6.2 4.3",
  people: "M7.5 9.5a2.7 2.7 0 1 0 0-5.5 2.7 2.7 0 0 0 0 5.5ZM2.5 15.8c.4-2.3 2.3-3.7 5-3.7s4.6 1.4 5 3.7M13 4.3a2.7 2.7 0 0 1 0 5M14.5 12.3c1.7.5 2.8 1.7 3 3.5",
  plus: "M10 4.5v11M4.5 10h11",
  reload: "M16 10a6 6 0 1 1-1.8-4.3L16 7.5M16 3.5v4h-4",
  search: "M9 14.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM13 13l4 4",
  send: "M10 16V4.5M5 9.3l5-5 5 5",
  settings: "M4 6h7M15 6h1M4 14h1M9 14h7M13 8a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM7 16a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z",
  soundOff: "M3.5 8v4h2.7l3.8 3.2V4.8L6.2 8zM13.5 8l4 4M17.5 8l-4 4",
  soundOn: "M3.5 8v4h2.7l3.8 3.2V4.8L6.2 8zM12.8 7.7a3.3 3.3 0 0 1 0 4.6M14.9 5.6a6.2 6.2 0 0 1 0 8.8",
  sparkle: "M9 3.5l1.5 4 4 1.5-4 1.5L9 14.5l-1.5-4-4-1.5 4-1.5zM15 12.5l.7 1.8 1.8.7-1.8.7-.7 1.8-.7-1.8-1.8-.7 1.8-.7z",
  stop: "M6 6h8v8H6z",
  takeOver: "M6.5 10V5.3a1.2 1.2 0 0 1 2.4 0V9M8.9 9V3.9a1.2 1.2 0 0 1 2.4 0V9M11.3 9V5a1.2 1.2 0 0 1 2.4 0v6.5c0 3-1.7 5-4.5 5-2.2 0-3.3-1-4.3-2.8L3.3 11c-.6-1 .8-2 1.7-1.1l1.5 1.6",
  tag: "M3.5 3.5h6l7 7-6 6-7-7zM6.7 6.7h.01",
};

/** @typedef {keyof typeof PATHS} IconName */

/**
 * The icon as an SVG element, hidden from screen readers: the label is its neighbour's.
 * @param {string} name
 * @returns {SVGSVGElement}
 */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  for (const [attribute, value] of Object.entries({
    class: "icon", viewBox: "0 0 20 20", width: "20", height: "20", fill: "none", stroke: "currentColor",
    "stroke-width": "1.5", "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true",
    focusable: "false",
  })) svg.setAttribute(attribute, value);
  const path = document.createElementNS(SVG, "path");
  const data = PATHS[name];
  if (data === undefined) throw new RangeError(`there is no icon ${name}`);
  path.setAttribute("d", data);
  svg.append(path);
  return svg;
}
