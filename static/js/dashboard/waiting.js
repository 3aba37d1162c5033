// @ts-check
/** How long somebody has waited, and how serious that is. Pure. */

export const AMBER_MS = 2 * 60_000;
export const RED_MS = 5 * 60_000;

/**
 * The three levels of the waiting clock. Each has its own colour, shape and word.
 * @param {number} waitedMs
 * @returns {"calm"|"amber"|"red"}
 */
export function waitLevel(waitedMs) {
  if (waitedMs >= RED_MS) return "red";
  return waitedMs >= AMBER_MS ? "amber" : "calm";
}

/**
 * A running clock: `0:42`, `12:05`, `1:02:09`. Never negative.
 * @param {number} ms
 */
export function clock(ms) {
  const total = Math.max(0, Math.floor(ms / 1000));
  const [hours, minutes, seconds] = [Math.floor(total / 3600), Math.floor(total / 60) % 60, total % 60];
  const tail = String(seconds).padStart(2, "0");
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, "0")}:${tail}` : `${minutes}:${tail}`;
}

/**
 * The largest whole unit of an age, for a short label.
 * @param {number} ms
 * @returns {{ unit: "now"|"minute"|"hour"|"day"|"week", count: number }}
 */
export function age(ms) {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 1) return { unit: "now", count: 0 };
  if (minutes < 60) return { unit: "minute", count: minutes };
  if (minutes < 24 * 60) return { unit: "hour", count: Math.floor(minutes / 60) };
  const days = Math.floor(minutes / (24 * 60));
  return days < 7 ? { unit: "day", count: days } : { unit: "week", count: Math.floor(days / 7) };
}
