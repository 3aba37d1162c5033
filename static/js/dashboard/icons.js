// @ts-check
// The dashboard's icons: the shared ones and those that only agents see.

import { PATHS as SHARED, drawing } from "../wire/icons.js";

/** @type {Readonly<Record<string, string>>} */
const PATHS = {
  ...SHARED,
  archive: "M3 4.5h14v3H3zM4.2 7.5v7.3c0 .9.7 1.7 1.7 1.7h8.2c1 0 1.7-.8 1.7-1.7V7.5M8 10.7h4",
  arrowUp: "M10 16V4M5 9l5-5 5 5",
  bell: "M5.5 13.5V9a4.5 4.5 0 0 1 9 0v4.5l1.2 1.3H4.3zM8.5 17h3",
  chat: "M3 9.5C3 6 6 3.5 10 3.5s7 2.5 7 6-3 6-7 6c-.9 0-1.7-.1-2.5-.4L4 16.5l.9-3C3.7 12.5 3 11.1 3 9.5Z",
  external: "M8 4.5H4.5v11h11V12M11.5 3.5h5v5M16 4l-7 7",
  filter: "M3.5 5.5h13M6 10h8M8.5 14.5h3",
  handBack: "M8 5.5L4 9.5l4 4M4.5 9.5H12a4 4 0 0 1 4 4v1.5",
  inbox: "M3 11.5 5.2 4.5h9.6l2.2 7v4H3zM3 11.5h4c.2 1.5 1.4 2.5 3 2.5s2.8-1 3-2.5h4",
  lock: "M5 9h10v7.5H5zM7 9V6.5a3 3 0 0 1 6 0V9",
  logout: "M8 4H4.5v12H8M12.5 6.5 16 10l-3.5 3.5M15.5 10H8",
  mail: "M3 5h14v10.5H3zM3.5 5.5l6.5 5.5 6.5-5.5",
  order: "M10 2.8 16.5 6.2v7.6L10 17.2l-6.5-3.4V6.2zM3.7 6.3 10 9.7l6.3-3.4M10 9.7v7.3M6.7 4.7l6.4 3.4",
  reload: "M16 10a6 6 0 1 1-1.8-4.3L16 7.5M16 3.5v4h-4",
  search: "M9 14.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM13 13l4 4",
  settings: "M4 6h7M15 6h1M4 14h1M9 14h7M13 8a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM7 16a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z",
  takeOver: "M6.5 10V5.3a1.2 1.2 0 0 1 2.4 0V9M8.9 9V3.9a1.2 1.2 0 0 1 2.4 0V9M11.3 9V5a1.2 1.2 0 0 1 2.4 0v6.5c0 3-1.7 5-4.5 5-2.2 0-3.3-1-4.3-2.8L3.3 11c-.6-1 .8-2 1.7-1.1l1.5 1.6",
};

/** The icon as an SVG element, hidden from screen readers: the label is its neighbour's. @param {string} name */
export function icon(name) {
  const data = PATHS[name];
  if (data === undefined) throw new RangeError(`there is no icon ${name}`);
  return drawing(data);
}
