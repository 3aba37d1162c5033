// @ts-check
// A browser whose tabs share one line, each with timers, locks and channels of its own, and a server that answers one
// frame at a time, when the test lets it.

import { AsyncLocalStorage } from "node:async_hooks";

import { Connection } from "../../static/js/wire/connection.js";
// Loaded before a line asks for it: a schedule waits for no file.
import "../../static/js/wire/fallback.js";
import { SharedLine } from "../../static/js/wire/shared-line.js";
import { browser } from "./pages.js";
import { network, turns, welcome } from "./socket.js";
import { clock } from "./window.js";

/** @typedef {import("./pages.js").Page} Page */
/** @typedef {import("./socket.js").Socket} Socket */
/** @typedef {import("../../static/js/wire/connection.js").ClientFrame} ClientFrame */
/** @typedef {ReturnType<typeof tabs>} Tabs */
/**
 * `told`: the frames that it was told. `asleep`: it was announced that it freezes.
 * @typedef {object} Tab
 * @property {number} number
 * @property {Page} page
 * @property {SharedLine} line
 * @property {string} conversation
 * @property {boolean} asleep
 * @property {any[]} told
 * @property {(act: () => unknown) => Promise<void>} acts  as its own scripts would
 * @property {(name: string) => Promise<void>} happens
 * @property {(frame: ClientFrame) => Promise<void>} says
 * @property {() => Promise<void>} thaws
 * @property {() => Promise<void>} ends  its person closes it, and its scripts run no more
 */

const STEP_MS = 500;
/** More frames than that at one time are a conversation of a line with itself. */
const ENDLESS = 3_000;

/** Whose scripts run. @type {AsyncLocalStorage<Page>} */
const running = new AsyncLocalStorage();

/** @param {string} conversation @param {{after?: unknown, before?: unknown}} stretch */
export const history = (conversation, { after = null, before = null }) => ({
  type: "history", page: { conversation, epoch: "e", upto: 9, events: [] }, after, before,
});

/** The server's end of all sockets. What comes from a frozen tab, or goes to it, waits until that thaws. */
class Server {
  /** The sockets that both ends take for open, with their tabs and what they show. @type {Map<Socket, {page: Page, conversation: string}>} */
  lines = new Map();
  /** @type {{page: Page, act: () => void}[]} */
  #coming = [];
  #conversations = 1;

  /** @param {Page} page @param {Socket} socket */
  dialled(page, socket) {
    this.#later(page, () => {
      if (socket.readyState !== 0) return;
      this.lines.set(socket, { page, conversation: "" });
      socket.accept();
    });
  }

  /** @param {Page} page @param {Socket} socket @param {any} frame */
  sent(page, socket, frame) {
    this.#later(page, () => this.lines.has(socket) && this.#answer(socket, frame));
  }

  /** Something is said that nobody asked for. @param {(conversation: string) => object} frame */
  tells(frame) {
    for (const [socket, { page, conversation }] of this.lines) {
      this.#later(page, () => this.lines.has(socket) && socket.says(frame(conversation)));
    }
  }

  /** @param {Socket} socket @param {number} code */
  ends(socket, code) {
    const page = this.lines.get(socket)?.page;
    this.lines.delete(socket);
    page?.runs(() => socket.ends(code));
  }

  /** The next of what came reaches its end. @returns {Promise<boolean>} whether there was any */
  async serve() {
    const index = this.#coming.findIndex(({ page }) => !page.frozen);
    if (index < 0) return false;
    const [{ page, act }] = this.#coming.splice(index, 1);
    page.runs(act);
    await turns();
    return true;
  }

  async serveAll() {
    for (let frames = 0; await this.serve(); frames += 1) if (frames > ENDLESS) throw new Error("tabs and server never fall silent");
  }

  /** @param {Page} page @param {() => void} act */
  #later(page, act) {
    this.#coming.push({ page, act });
  }

  /** @param {Socket} socket @param {any} frame */
  #answer(socket, frame) {
    const show = (/** @type {string} */ conversation) => {
      Object.assign(this.lines.get(socket) ?? {}, { conversation });
      socket.says(welcome({ conversation }));
    };
    switch (frame.type) {
      case "hello": return show(frame.conversation ?? "c1");
      case "conversation.new": return show(`c${this.#conversations += 1}`);
      case "conversation.open":
        if (frame.conversation !== "gone") return show(frame.conversation);
        return socket.says({ type: "refused", id: null, code: "not_found", message: "", of: frame.type });
      case "history.fetch": return socket.says(history(frame.conversation, frame));
      case "message.send": return socket.says({ type: "ack", id: frame.id, seq: 1, conversation: frame.conversation, at: 1 });
      case "ping": return socket.says({ type: "pong" });
    }
  }
}

/** Timers of a frozen page run when it thaws. */
function giveTimersToPages() {
  const stopped = new WeakSet();
  const world = /** @type {any} */ (globalThis);
  for (const [set, clear] of [["setTimeout", "clearTimeout"], ["setInterval", "clearInterval"]]) {
    const { [set]: start, [clear]: stop } = world;
    world[set] = (/** @type {() => void} */ act, /** @type {number} */ ms) => {
      const page = running.getStore();
      if (page === undefined) return start(act, ms);
      let due = false;
      const run = () => {
        due = false;
        if (!stopped.has(timer)) page.runs(act);
      };
      const timer = start(() => {
        if (!page.frozen) return run();
        if (!due) page.inbox.push(run);
        due = true;
      }, ms);
      return timer;
    };
    world[clear] = (/** @type {object | undefined} */ timer) => {
      if (timer === undefined) return;
      stopped.add(timer);
      stop(timer);
    };
  }
}

/**
 * A browser without tabs, on a clock of its own until `over`.
 * @param {import("node:test").TestContext} t
 * @param {() => number} chance  what the scripts draw
 */
export function tabs(t, chance) {
  const tick = clock(t, { apis: ["setTimeout", "setInterval", "Date"], now: 1_700_000_000_000 });
  giveTimersToPages();
  const drawn = t.mock.method(Math, "random", chance);
  Object.defineProperty(globalThis, "navigator", { get: () => ({ locks: running.getStore()?.locks }), configurable: true });
  Object.assign(globalThis, {
    document: Object.assign(new EventTarget(), { hidden: false }),
    fetch: () => Promise.reject(new Error("only sockets get through")),
    BroadcastChannel: function (/** @type {string} */ name) { return new (/** @type {any} */ (running.getStore()).Channel)(name); },
  });
  const pages = browser();
  const server = new Server();
  /** @type {Tab[]} */
  const all = [];
  let made = 0;

  const add = async () => {
    const page = pages.page();
    page.runs = (act) => void running.run(page, act);
    const life = Object.assign(new EventTarget(), { document: { hidden: false } });
    const net = network();
    const held = () => (tab.conversation === "" ? null : { conversation: tab.conversation, epoch: "e", seq: 1 });
    const socketClass = /** @type {any} */ (class extends net.socketClass {
      /** @param {string} url @param {string[]} protocols */
      constructor(url, protocols) {
        super(url, protocols);
        server.dialled(page, net.last);
      }

      /** @param {string} text */
      send(text) {
        super.send(text);
        server.sent(page, /** @type {any} */ (this), JSON.parse(text));
      }

      close() {
        super.close();
        server.lines.delete(/** @type {any} */ (this));
      }
    });
    const line = new SharedLine({
      line: new Connection({ url: "wss://chat.example/ws/customer", random: chance, hello: () => ({ type: "hello", ...held() }), socketClass }),
      group: () => "mia", held, page: life,
    });
    /** @type {Tab} */
    const tab = {
      number: made += 1, page, line, conversation: "", asleep: false, told: [],
      acts: async (act) => {
        page.runs(act);
        await turns();
      },
      happens: (name) => tab.acts(() => life.dispatchEvent(new Event(name))),
      says: (frame) => tab.acts(() => line.send(frame)),
      thaws: () => pages.thaw(page),
      ends: async () => {
        all.splice(all.indexOf(tab), 1);
        net.last?.close();
        page.end();
        page.frozen = true;
        await turns();
      },
    };
    line.addEventListener("frame", (event) => {
      const frame = /** @type {CustomEvent<import("../../static/js/wire/frames.js").ServerFrame>} */ (event).detail;
      tab.told.push(frame);
      if (frame.type === "welcome") tab.conversation = frame.conversation;
    });
    all.push(tab);
    await tab.acts(() => line.open());
    return tab;
  };

  return {
    all, server, add,
    /** @param {number} ms @param {() => Promise<void>} [meanwhile] */
    pass: async (ms, meanwhile = async () => {}) => {
      for (let left = ms; left > 0; left -= STEP_MS) {
        await tick(Math.min(STEP_MS, left));
        await meanwhile();
      }
    },
    over: async () => {
      for (const { line, page, acts } of all) {
        await acts(() => line.close());
        page.end();
        page.frozen = true;
      }
      drawn.mock.restore();
      t.mock.timers.reset();
    },
  };
}
