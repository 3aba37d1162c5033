// @ts-check
// What tabs, browser and server do to each other in an order that nobody thought of.

import assert from "node:assert/strict";
import { test } from "node:test";

import { generator } from "./random.js";
import { history, tabs } from "./tabs.js";

/** @typedef {import("./tabs.js").Tab} Tab */
/** @typedef {ReturnType<typeof generator>} Random */

const RUNS = 100;
const STEPS = 40;
const MOST_TABS = 5;
/** Of a run: more lines that die young are taken for blocked sockets. */
const MOST_LOSSES = 2;
/** Silence is noticed, what is asked is answered, and a line that was lost is back. */
const SETTLED_MS = 90_000;

/** What may happen, the more often the larger its number. @type {Record<string, number>} */
const OFTEN = { serve: 4, time: 4, serveAll: 2, open: 2, send: 2 };

/**
 * What may happen to a browser.
 * @param {import("./tabs.js").Tabs} world
 * @param {Random} random
 * @param {(tab: Tab, key: unknown) => void} asks  notes what a tab asks for
 */
function happenings(world, random, asks) {
  const { all, server } = world;
  let ids = 0;
  let losses = 0;
  /** @param {(tab: Tab) => unknown} act @param {(tab: Tab) => boolean} [of] */
  const one = (act, of = (tab) => !tab.page.frozen) => async () => {
    const those = all.filter(of);
    if (those.length > 0) await act(random.pick(those));
  };
  return {
    open: async () => { if (all.length < MOST_TABS) await world.add(); },
    close: one((tab) => tab.ends()),
    freezeUnsaid: one((tab) => { tab.page.frozen = true; }),
    thaw: one((tab) => tab.thaws(), ({ page }) => page.frozen),
    freeze: one((tab) => { tab.asleep = true; return tab.happens("freeze"); }, ({ page, asleep }) => !page.frozen && !asleep),
    resume: one((tab) => { tab.asleep = false; return tab.happens("resume"); }, ({ page, asleep }) => !page.frozen && asleep),
    look: one((tab) => tab.happens("visibilitychange")),
    begin: one((tab) => tab.says({ type: "conversation.new" })),
    goBack: one((tab) => tab.says({ type: "conversation.open", conversation: "c1" })),
    goAstray: one((tab) => tab.says({ type: "conversation.open", conversation: "gone" })),
    fetchOlder: one((tab) => {
      const before = ids += 1;
      asks(tab, before);
      return tab.says({ type: "history.fetch", conversation: tab.conversation, before });
    }),
    send: one((tab) => {
      const id = `m${ids += 1}`;
      asks(tab, id);
      return tab.says({ type: "message.send", id, conversation: tab.conversation, text: "x" });
    }),
    tellUnasked: async () => server.tells((conversation) => history(conversation, { after: 9 })),
    lose: async () => {
      const running = [...server.lines].filter(([, { page }]) => !page.frozen);
      if (running.length === 0 || (losses += 1) > MOST_LOSSES) return;
      server.ends(random.pick(running)[0], random.pick([1006, 1012, 4408]));
    },
    time: async () => {
      await world.pass(random.pick([10, 500, 1_500, 2_500]));
      if (random.below(3) > 0) await server.serveAll();
    },
    serve: () => server.serve(),
    serveAll: () => server.serveAll(),
  };
}

/** Nobody is told the answer to what another asked, nor an answer twice. @param {Tab} tab @param {Set<unknown>} asked */
function assertItsOwn(tab, asked) {
  const answers = tab.told.flatMap(({ type, id, before }) => (type === "ack" ? [id] : type === "history" && before !== null ? [before] : []));
  assert.deepEqual(answers.filter((key) => !asked.has(key)), [], `tab ${tab.number} is told what it never asked for`);
  assert.equal(new Set(answers).size, answers.length, `tab ${tab.number} is answered twice`);
}

/** Everybody runs and is looked at again, and has time. @param {import("./tabs.js").Tabs} world */
async function settle({ all, server, add, pass }) {
  if (all.length === 0) await add();
  for (const tab of all) {
    if (tab.page.frozen) await tab.thaws();
    if (tab.asleep) await tab.happens("resume");
  }
  for (const tab of all) {
    await tab.happens("visibilitychange");
    await tab.says({ type: "conversation.list" });
  }
  await pass(SETTLED_MS, () => server.serveAll());
}

/** All tabs have the one line, show the same, and hear what happens, once. @param {import("./tabs.js").Tabs} world */
async function assertShared({ all, server }) {
  const shown = [...server.lines.values()].map(({ conversation }) => conversation);
  assert.equal(shown.length, 1, "lines that are open");
  const views = () => all.map(({ number, line, conversation }) => [number, line.state, conversation]);
  assert.deepEqual(views(), all.map(({ number }) => [number, "open", shown[0]]));
  const message = { id: "m", place: 5, author: "customer", name: "", text: "t", at: 5 };
  server.tells((conversation) => ({ type: "event", conversation, seq: 5, kind: "message", at: 5, message }));
  await server.serveAll();
  assert.deepEqual(all.map(({ told }) => told.filter(({ type }) => type === "event").length), all.map(() => 1), "how often an event is heard");
}

/** @param {import("node:test").TestContext} t @param {number} seed */
async function run(t, seed) {
  const random = generator(seed);
  const world = tabs(t, random.next);
  /** @type {Map<Tab, Set<unknown>>} */
  const asked = new Map();
  const may = happenings(world, random, (tab, key) => asked.set(tab, (asked.get(tab) ?? new Set()).add(key)));
  const names = /** @type {(keyof typeof may)[]} */ (Object.keys(may)).flatMap((name) => Array.from({ length: OFTEN[name] ?? 1 }, () => name));
  const happened = [];
  try {
    for (let step = 0; step < STEPS; step += 1) {
      const name = random.pick(names);
      happened.push(name);
      await may[name]();
      for (const tab of world.all) assertItsOwn(tab, asked.get(tab) ?? new Set());
    }
    await settle(world);
    for (const tab of world.all) assertItsOwn(tab, asked.get(tab) ?? new Set());
    await assertShared(world);
  } catch (error) {
    throw new Error(`seed ${seed}: ${happened.join(" ")}\n${error}`, { cause: error });
  } finally {
    await world.over();
  }
}

// node tests/js/shared-line-schedules.test.js SEED begins with a schedule that failed.
test("whatever happens to tabs, each is told its own answers, and in the end all share one line", async (t) => {
  const first = Number(process.argv[2] ?? Math.floor(Math.random() * 2 ** 31));
  t.diagnostic(`seeds from ${first}`);
  for (let seed = first; seed < first + RUNS; seed += 1) await run(t, seed);
});
