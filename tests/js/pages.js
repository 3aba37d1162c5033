// @ts-check
// What the pages of one browser share besides their storage: locks and channels. A test can freeze a page.

import { turns } from "./socket.js";

/** @typedef {{locks: any, Channel: any, frozen: boolean, end: () => void, inbox: (() => void)[], runs: (act: () => unknown) => void}} Page */
/** @typedef {{page: Page, name: string, run: (lock: object | null) => Promise<unknown>, done: (value: unknown) => void, fail: (error: unknown) => void}} Request */

export function browser() {
  /** @type {Map<string, Request>} */
  const held = new Map();
  /** @type {Request[]} */
  const waiting = [];
  /** @type {Set<any>} */
  const channels = new Set();

  /** @param {Request} request */
  const grant = (request) => {
    held.set(request.name, request);
    const over = () => {
      if (held.get(request.name) !== request) return;
      held.delete(request.name);
      next(request.name);
    };
    void request.run({ name: request.name }).then((value) => { over(); request.done(value); }, (error) => { over(); request.fail(error); });
  };
  /** @param {string} name */
  const next = (name) => {
    const index = waiting.findIndex((one) => one.name === name);
    if (index >= 0 && !held.has(name)) grant(waiting.splice(index, 1)[0]);
  };
  /** @param {Page} page @param {() => void} act */
  const reach = (page, act) => queueMicrotask(() => (page.frozen ? page.inbox.push(act) : page.runs(act)));

  /** @returns {Page} */
  const page = () => {
    /** @type {Page} */
    const self = {
      frozen: false,
      inbox: [],
      /** How its scripts run; a test may tell them from those of other pages. */
      runs: (act) => void act(),
      locks: {
        request: (/** @type {string} */ name, /** @type {any} */ { ifAvailable, steal, signal }, /** @type {any} */ run) => new Promise((done, fail) => {
          const request = { page: self, name, run: async (/** @type {any} */ lock) => run(lock), done, fail };
          const holder = held.get(name);
          if (steal && holder) {
            held.delete(name);
            reach(holder.page, () => holder.fail(new DOMException("stolen", "AbortError")));
          }
          if (!held.has(name)) return grant(request);
          if (ifAvailable) return void Promise.resolve(run(null)).then(done, fail);
          waiting.push(request);
          signal?.addEventListener("abort", () => {
            const index = waiting.indexOf(request);
            if (index < 0) return; // granted: it is too late
            waiting.splice(index, 1);
            fail(new DOMException("aborted", "AbortError"));
          });
        }),
      },
      Channel: class {
        /** @type {((event: {data: any}) => void) | null} */
        onmessage = null;
        /** @param {string} name */
        constructor(name) {
          this.name = name;
          this.page = self;
          channels.add(this);
        }

        /** @param {any} data */
        postMessage(data) {
          const copy = structuredClone(data);
          for (const other of channels) {
            if (other !== this && other.name === this.name) reach(other.page, () => channels.has(other) && other.onmessage?.({ data: copy }));
          }
        }

        close() {
          channels.delete(this);
        }
      },
      /** The browser takes back what a closed page had. */
      end: () => {
        for (const channel of channels) if (channel.page === self) channels.delete(channel);
        for (const request of waiting.filter((one) => one.page === self)) waiting.splice(waiting.indexOf(request), 1);
        for (const [name, request] of held) {
          if (request.page !== self) continue;
          held.delete(name);
          next(name);
        }
      },
    };
    return self;
  };

  return {
    page,
    /** It runs nothing and hears nothing. @param {Page} one */
    freeze: (one) => { one.frozen = true; },
    /** @param {Page} one */
    thaw: async (one) => {
      one.frozen = false;
      for (const act of one.inbox.splice(0)) one.runs(act);
      await turns();
    },
  };
}
