// @ts-check
// The window that the modules under test listen to, and its clock, both in the test's hands.

import { turns } from "./socket.js";

/**
 * Stops the clock. The function it gives moves it on by so many milliseconds and lets happen what that set off.
 * @param {import("node:test").TestContext} t
 * @param {import("node:test").MockTimersOptions} options
 */
export function clock(t, options) {
  t.mock.timers.enable(options);
  return async (/** @type {number} */ ms) => {
    t.mock.timers.tick(ms);
    await turns();
  };
}

/** Has the window's listeners hear what happens on `page`; the function it gives lets an event happen there. @param {EventTarget} page */
export function listening(page) {
  Object.assign(globalThis, { addEventListener: page.addEventListener.bind(page), removeEventListener: page.removeEventListener.bind(page) });
  return async (/** @type {string} */ name) => {
    page.dispatchEvent(new Event(name));
    await turns();
  };
}
