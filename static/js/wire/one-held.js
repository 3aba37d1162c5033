// @ts-check
// One held connection a browser: over HTTP/1.1 an origin has six for all its tabs.

import { hold } from "./locks.js";

const NAME = "chatsvc-held";

/** The lines of this page that may keep a connection waiting. @type {Set<object>} */
const lines = new Set();
/** @type {(() => void) | null} */
let release = null;

/** Whether this line may keep a connection waiting: no other page of this browser does. It may until `letGo`. @param {object} line */
export async function mayHold(line) {
  if (globalThis.navigator?.locks === undefined) return true;
  lines.add(line);
  if (release !== null) return true;
  try {
    // Another line of this page may have asked at the same time, and holds it for both.
    const ours = await hold(NAME, { ifAvailable: true });
    release ??= ours;
  } catch {
    return true; // denied with the storage: nobody to share with
  }
  if (release === null) lines.delete(line);
  return release !== null;
}

/** The line has ended: another page may. @param {object} line */
export function letGo(line) {
  lines.delete(line);
  if (lines.size > 0) return;
  release?.();
  release = null;
}
