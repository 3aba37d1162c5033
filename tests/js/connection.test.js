// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import "../../static/js/wire/fallback.js"; // loaded, so that its import takes no time
import { CLOSE, Connection, afterClose } from "../../static/js/wire/connection.js";
import { network, turns, welcome } from "./socket.js";
import { storage } from "./storage.js";
import { clock, listening } from "./window.js";

/** @typedef {import("../../static/js/wire/connection.js").StateDetail} StateDetail */

/**
 * A connection on a clock that only tick() moves, with what it told. `chance` is the random number it draws.
 * @param {import("node:test").TestContext} t
 * @param {{chance?: number, hello?: (fresh: boolean) => any}} [options]
 */
async function dialled(t, { chance = 0.5, hello = () => ({ type: "hello", token: "t" }) } = {}) {
  const tick = clock(t, { apis: ["setTimeout", "setInterval"] });
  const page = Object.assign(new EventTarget(), { hidden: false });
  Object.assign(globalThis, { document: page });
  const happens = listening(page);
  const net = network();
  const http = t.mock.method(globalThis, "fetch", async () => { throw new TypeError("nothing gets through"); });
  /** @type {boolean[]} */
  const hellos = [];
  const line = new Connection({
    url: "wss://chat.example/ws/customer", socketClass: net.socketClass, random: () => chance,
    hello: (fresh) => {
      hellos.push(fresh);
      return hello(fresh);
    },
  });
  /** @type {(string | StateDetail)[]} */
  const told = [];
  line.addEventListener("state", (event) => told.push(/** @type {CustomEvent} */ (event).detail));
  line.addEventListener("frame", (event) => told.push(/** @type {CustomEvent} */ (event).detail.type));
  line.open();
  await turns();
  t.after(() => line.close());
  return { net, http, line, told, hellos, tick, happens, page, states: () => told.filter((one) => typeof one !== "string").map((one) => one.state) };
}

/** The same with a server that has welcomed it. @param {import("node:test").TestContext} t @param {Parameters<typeof dialled>[1]} [options] */
async function welcomed(t, options) {
  const all = await dialled(t, options);
  all.net.last.accept();
  all.net.last.says(welcome());
  return all;
}

test("the first frame is hello, and nothing is sent before the server has answered it", async (t) => {
  const { net, line, told } = await dialled(t);
  assert.deepEqual(net.last.protocols, ["chatsvc.v1.msgpack", "chatsvc.v1.json"]);
  assert.equal(net.last.url, "wss://chat.example/ws/customer");
  assert.equal(net.last.binaryType, "arraybuffer");
  assert.equal(line.send({ type: "ping" }), false);
  net.last.accept();
  assert.equal(line.send({ type: "ping" }), false);
  assert.deepEqual(net.last.sent, [{ type: "hello", token: "t" }]);
  net.last.says(welcome());
  assert.equal(line.send({ type: "typing.set", on: true }), true);
  assert.deepEqual(net.last.last("typing.set"), { type: "typing.set", on: true });
  assert.deepEqual(told.map((one) => (typeof one === "string" ? one : one.state)), ["connecting", "open", "welcome"]);
});

test("opening twice dials once", async (t) => {
  const { net, line } = await dialled(t);
  line.open();
  await turns();
  assert.equal(net.sockets.length, 1);
});

test("a refusal before the welcome is passed on and opens nothing", async (t) => {
  const { net, line, told } = await dialled(t);
  net.last.accept();
  net.last.says({ type: "refused", code: "bad_token", message: "" });
  assert.equal(line.state, "connecting");
  assert.equal(told.at(-1), "refused");
});

test("pongs and frames of later versions are nobody's business", async (t) => {
  const { net, told } = await welcomed(t);
  const before = told.length;
  net.last.says({ type: "pong" });
  net.last.says({ type: "hologram" });
  assert.equal(told.length, before);
});

test("attempts grow apart, up to half a minute, and each is drawn by lot", () => {
  const ceilings = [500, 750, 1125, 1687.5, 2531.25, 3796.875];
  ceilings.forEach((ceiling, attempt) => assert.equal(afterClose(1006, attempt, 0.5, false).retry_ms, ceiling / 2));
  assert.equal(afterClose(1006, 10, 0.5, false).retry_ms, 500 * 1.5 ** 10 / 2);
  assert.equal(afterClose(1006, 11, 0.5, false).retry_ms, 15_000);
  assert.equal(afterClose(1006, 500, 0.999, false).retry_ms, 29_970);
  assert.equal(afterClose(1006, 3, 0, false).retry_ms, 0);
});

test("each close code means what the protocol says", () => {
  const never = { retry_ms: null };
  for (const code of [CLOSE.never_retry, CLOSE.unknown_subprotocol, CLOSE.replaced, CLOSE.protocol]) assert.deepEqual(afterClose(code, 0, 0.5, false), never);
  assert.deepEqual(afterClose(CLOSE.login_again, 4, 0.5, false), { retry_ms: 0, fresh: true });
  assert.deepEqual(afterClose(CLOSE.login_again, 0, 0.5, true), never);
  assert.deepEqual(afterClose(CLOSE.asleep, 0, 0.5, false), { retry_ms: null, wake: true });
  assert.deepEqual(afterClose(CLOSE.slow_down, 0, 0.5, false), { retry_ms: 15_000 });
  for (const code of [1000, 1001, 1006, 1011, 1013]) assert.deepEqual(afterClose(code, 0, 0.5, false), { retry_ms: 250 });
  assert.deepEqual(CLOSE, { better: 4000, restarting: 1012, protocol: 4400, login_again: 4401, never_retry: 4403, unknown_subprotocol: 4406, asleep: 4408, replaced: 4409, slow_down: 4429 });
});

test("a line that ends for a better one is not paused, however much failed before", () => {
  assert.deepEqual(afterClose(CLOSE.better, 99, 0.999, false), { retry_ms: 0 });
});

test("who was told to slow down comes back after ten to twenty seconds, not with all the others", () => {
  assert.equal(afterClose(CLOSE.slow_down, 0, 0, false).retry_ms, 10_000);
  assert.equal(afterClose(CLOSE.slow_down, 0, 0.999, false).retry_ms, 19_990);
  assert.equal(afterClose(CLOSE.slow_down, 99, 0.5, false).retry_ms, 25_000);
});

test("after a restart of the server everybody comes back within five seconds, not at once", () => {
  assert.equal(afterClose(CLOSE.restarting, 0, 0, false).retry_ms, 0);
  assert.equal(afterClose(CLOSE.restarting, 0, 0.999, false).retry_ms, 4_995);
  assert.equal(afterClose(CLOSE.restarting, 2, 0.5, false).retry_ms, 2_500);
  assert.equal(afterClose(CLOSE.restarting, 99, 0.5, false).retry_ms, 15_000);
});

test("failed attempts go on for ever, ever later, and a ping that came back begins to count anew", async (t) => {
  const { net, told, tick } = await dialled(t);
  for (let attempt = 0; attempt < 12; attempt += 1) {
    net.last.ends(1006);
    const delay = Math.min(30_000, 500 * 1.5 ** attempt) / 2;
    assert.deepEqual(told.at(-1), { state: "reconnecting", code: 1006, retry_ms: delay });
    await tick(Math.floor(delay) - 1);
    assert.equal(net.sockets.length, attempt + 1);
    await tick(2);
    assert.equal(net.sockets.length, attempt + 2);
    assert.deepEqual(told.at(-1), { state: "reconnecting", code: null, retry_ms: null });
  }
  net.last.accept();
  net.last.says(welcome());
  assert.deepEqual(told.at(-2), { state: "open", code: null, retry_ms: null });
  await tick(30_000);
  net.last.says({ type: "pong" });
  net.last.ends(1001);
  assert.deepEqual(told.at(-1), { state: "reconnecting", code: 1001, retry_ms: 250 });
});

test("a line that is welcomed and dies at once is tried ever later too", async (t) => {
  const { net, told, tick } = await dialled(t);
  for (const delay of [250, 375, 562.5, 843.75]) {
    net.last.accept();
    net.last.says(welcome());
    net.last.ends(1006);
    assert.deepEqual(told.at(-1), { state: "reconnecting", code: 1006, retry_ms: delay });
    await tick(1_000);
  }
});

test("a hello that cannot be made is a failed attempt", async (t) => {
  let broken = true;
  const { net, told, tick, hellos } = await dialled(t, {
    hello: async () => {
      if (broken) throw new Error("no session");
      return { type: "hello" };
    },
  });
  assert.equal(net.sockets.length, 0);
  assert.deepEqual(told.at(-1), { state: "reconnecting", code: 1006, retry_ms: 250 });
  broken = false;
  await tick(250);
  assert.equal(net.sockets.length, 1);
  assert.deepEqual(hellos, [false, false]);
});

test("no welcome within fifteen seconds is a failed attempt", async (t) => {
  const { net, told, tick } = await dialled(t);
  net.last.accept();
  await tick(14_999);
  assert.equal(told.length, 1);
  await tick(1);
  assert.equal(net.last.readyState, 3);
  assert.deepEqual(told.at(-1), { state: "reconnecting", code: 1006, retry_ms: 250 });
});

test("a socket that never opens, whose hello is still being made, is given up as well", async (t) => {
  const { net, told, tick } = await dialled(t, { hello: () => new Promise(() => {}) });
  await tick(15_000);
  assert.equal(net.sockets.length, 0);
  assert.deepEqual(told.at(-1), { state: "reconnecting", code: 1006, retry_ms: 250 });
});

test("a welcomed line outlives the deadline of its welcome", async (t) => {
  const { net, line, tick } = await welcomed(t);
  await tick(16_000);
  assert.equal(line.state, "open");
  assert.equal(net.sockets.length, 1);
});

test("who may never come back does not try, whatever happens to the page", async (t) => {
  for (const code of [CLOSE.never_retry, CLOSE.replaced]) {
    await t.test(String(code), async (each) => {
      const { net, told, tick, happens } = await welcomed(each);
      net.last.ends(code);
      assert.deepEqual(told.at(-1), { state: "closed", code, retry_ms: null });
      for (const name of ["online", "pageshow", "visibilitychange"]) await happens(name);
      await tick(600_000);
      assert.equal(net.sockets.length, 1);
    });
  }
});

test("a refused log-in is renewed once, and again only after a welcome", async (t) => {
  const { net, told, tick, hellos } = await welcomed(t);
  net.last.ends(CLOSE.login_again);
  await tick(0);
  assert.deepEqual(hellos, [false, true]);
  net.last.accept();
  net.last.says(welcome());
  net.last.ends(CLOSE.login_again);
  await tick(0);
  assert.deepEqual(hellos, [false, true, true]);
  net.last.accept();
  net.last.ends(CLOSE.login_again);
  assert.deepEqual(told.at(-1), { state: "closed", code: CLOSE.login_again, retry_ms: null });
  await tick(60_000);
  assert.equal(net.sockets.length, 3);
});

test("a token that could not be renewed is asked for again", async (t) => {
  let offline = false;
  const { net, tick, hellos } = await welcomed(t, {
    hello: async () => {
      if (offline) throw new Error("offline");
      return { type: "hello" };
    },
  });
  offline = true;
  net.last.ends(CLOSE.login_again);
  await tick(0);
  offline = false;
  await tick(375);
  assert.deepEqual(hellos, [false, true, true]);
  net.last.accept();
  net.last.says(welcome());
  net.last.ends(1006);
  await tick(1_000);
  assert.deepEqual(hellos, [false, true, true, false]);
});

test("a line that was put to sleep stays so until it is used", async (t) => {
  const { net, line, told, tick } = await welcomed(t);
  net.last.ends(CLOSE.asleep);
  assert.deepEqual(told.at(-1), { state: "closed", code: CLOSE.asleep, retry_ms: null });
  await tick(600_000);
  assert.equal(net.sockets.length, 1);
  assert.equal(line.send({ type: "typing.set", on: true }), false);
  await turns();
  assert.equal(net.sockets.length, 2);
  net.last.accept();
  net.last.says(welcome());
  assert.equal(line.send({ type: "ping" }), true);
});

test("a line that was put to sleep wakes when its page is looked at", async (t) => {
  const { net, told, happens, page } = await welcomed(t);
  net.last.ends(CLOSE.asleep);
  page.hidden = true;
  for (const name of ["visibilitychange", "online"]) await happens(name);
  assert.equal(net.sockets.length, 1);
  page.hidden = false;
  await happens("visibilitychange");
  assert.equal(net.sockets.length, 2);
  assert.deepEqual(told.at(-1), { state: "connecting", code: null, retry_ms: null });
});

test("a sleeping line that was closed is not woken by use", async (t) => {
  const { net, line } = await welcomed(t);
  net.last.ends(CLOSE.asleep);
  line.close();
  assert.equal(line.send({ type: "ping" }), false);
  await turns();
  assert.equal(net.sockets.length, 1);
});

/** Eight attempts have failed and the next one waits. @param {import("node:test").TestContext} t */
async function failing(t) {
  const all = await dialled(t);
  for (let attempt = 0; attempt < 8; attempt += 1) {
    all.net.last.ends(1006);
    if (attempt < 7) await all.tick(30_000);
  }
  assert.equal(all.net.sockets.length, 8);
  return all;
}

test("who is looked at, or online, or back from the browser's memory does not wait for the next attempt", async (t) => {
  for (const name of ["visibilitychange", "online", "pageshow"]) {
    await t.test(name, async (each) => {
      const { net, told, tick, happens } = await failing(each);
      await happens(name);
      assert.equal(net.sockets.length, 9);
      assert.deepEqual(told.at(-1), { state: "reconnecting", code: null, retry_ms: null });
      await happens(name);
      assert.equal(net.sockets.length, 9);
      // The attempt that was waiting for its time does not come on top.
      await tick(14_000);
      assert.equal(net.sockets.length, 9);
    });
  }
});

test("a page that nobody sees is in no hurry, unless its network is back", async (t) => {
  const { net, happens, page } = await failing(t);
  page.hidden = true;
  for (const name of ["visibilitychange", "pageshow"]) await happens(name);
  assert.equal(net.sockets.length, 8);
  await happens("online");
  assert.equal(net.sockets.length, 9);
});

test("a page that is frozen ends its line, and takes it up again when it thaws, seen or not", async (t) => {
  const { net, line, told, tick, happens, page } = await welcomed(t);
  page.hidden = true;
  await happens("freeze");
  assert.equal(net.last.readyState, 3);
  assert.deepEqual(told.at(-1), { state: "reconnecting", code: null, retry_ms: null });
  await tick(600_000);
  assert.equal(net.sockets.length, 1);
  await happens("resume");
  assert.equal(net.sockets.length, 2);
  net.last.accept();
  net.last.says(welcome());
  assert.equal(line.state, "open");
});

test("a page frozen between two attempts makes none until it thaws", async (t) => {
  const { net, tick, happens } = await welcomed(t);
  net.last.ends(1006);
  await happens("freeze");
  await tick(600_000);
  assert.equal(net.sockets.length, 1);
  await happens("resume");
  assert.equal(net.sockets.length, 2);
});

test("a socket found closed after a sleep is replaced without asking it", async (t) => {
  const { net, told, happens } = await welcomed(t);
  net.last.readyState = 3;
  await happens("pageshow");
  assert.deepEqual(told.at(-1), { state: "reconnecting", code: 1006, retry_ms: 250 });
});

test("a line that only seems open after a sleep is found out and replaced", async (t) => {
  const { net, line, told, tick, happens } = await welcomed(t);
  await happens("visibilitychange");
  assert.deepEqual(net.last.sent.at(-1), { type: "ping" });
  await tick(4_999);
  assert.equal(line.state, "open");
  await tick(1);
  assert.deepEqual(told.at(-1), { state: "reconnecting", code: 1006, retry_ms: 250 });
});

test("a browser that says that it is offline has its line asked, seen or not; one that answers is kept", async (t) => {
  const { net, line, told, tick, happens, page } = await welcomed(t);
  page.hidden = true;
  await happens("offline");
  net.last.says({ type: "pong" });
  await tick(6_000);
  assert.equal(line.state, "open");
  await happens("offline");
  await tick(5_000);
  assert.deepEqual(told.at(-1), { state: "reconnecting", code: 1006, retry_ms: 250 });
  await happens("offline");
  assert.equal(net.sockets.length, 1);
});

test("a line that answers after a sleep is kept", async (t) => {
  const { net, line, tick, happens } = await welcomed(t);
  await happens("pageshow");
  await happens("visibilitychange");
  net.last.says({ type: "pong" });
  await tick(6_000);
  assert.equal(line.state, "open");
  assert.equal(net.sockets.length, 1);
});

test("the heart beats as often as the server asks, and a line that does not answer in fifteen seconds is lost", async (t) => {
  const { net, line, told, tick } = await dialled(t);
  net.last.accept();
  net.last.says(welcome({ heartbeat_s: 20 }));
  const pings = () => net.sockets[0].sent.filter((frame) => frame.type === "ping").length;
  await tick(19_999);
  assert.equal(pings(), 0);
  for (let beat = 1; beat <= 3; beat += 1) {
    await tick(beat === 1 ? 1 : 20_000);
    assert.equal(pings(), beat);
    net.last.says({ type: "pong" });
  }
  await tick(20_000);
  await tick(14_999);
  assert.equal(line.state, "open");
  await tick(1);
  assert.deepEqual(told.at(-1), { state: "reconnecting", code: 1006, retry_ms: 250 });
  assert.equal(net.sockets[0].readyState, 3);
});

test("the heart beats anew when a pong or a welcome asks for another interval", async (t) => {
  const { net, tick } = await welcomed(t);
  const pings = () => net.last.sent.filter((frame) => frame.type === "ping").length;
  net.last.says({ type: "pong", heartbeat_s: 120 });
  await tick(119_999);
  assert.equal(pings(), 0);
  await tick(1);
  assert.equal(pings(), 1);
  net.last.says({ type: "pong" });
  await tick(120_000);
  assert.equal(pings(), 2);
  net.last.says({ type: "pong", heartbeat_s: 15 });
  await tick(15_000);
  assert.equal(pings(), 3);
  net.last.says(welcome({ heartbeat_s: 60 }));
  net.last.says({ type: "pong" });
  await tick(59_999);
  assert.equal(pings(), 3);
  await tick(1);
  assert.equal(pings(), 4);
});

test("a ping says whether the page is hidden, and nothing where it is not", async (t) => {
  const { net, page, tick } = await welcomed(t);
  await tick(30_000);
  assert.deepEqual(net.last.last("ping"), { type: "ping" });
  net.last.says({ type: "pong" });
  page.hidden = true;
  await tick(30_000);
  assert.deepEqual(net.last.last("ping"), { type: "ping", hidden: true });
});

test("a line on which only the server is heard is lost: what it says of itself answers nothing", async (t) => {
  const { net, line, tick } = await welcomed(t);
  await tick(30_000);
  for (let second = 1; second < 15; second += 1) {
    await tick(1_000);
    net.last.says({ type: "delta", handle: 1, offset: second, text: "x" });
  }
  assert.equal(line.state, "open");
  await tick(1_000);
  assert.equal(line.state, "reconnecting");
});

test("what has an id is answered within fifteen seconds of the first such frame, or the line is lost", async (t) => {
  const { net, line, tick } = await welcomed(t);
  line.send({ type: "message.send", id: "a", conversation: "c", text: "one" });
  await tick(10_000);
  line.send({ type: "message.send", id: "b", conversation: "c", text: "two" });
  await tick(4_999);
  assert.equal(line.state, "open");
  await tick(1);
  assert.equal(line.state, "reconnecting");
  assert.equal(net.sockets[0].readyState, 3);
});

test("an answer is an answer, also a refusal, and what has no id waits for none", async (t) => {
  const { net, line, tick } = await welcomed(t);
  for (const answer of [{ type: "ack", id: "a", seq: 1, conversation: "c", at: 1 }, { type: "refused", id: "a", code: "slow_down", message: "" }]) {
    line.send({ type: "message.send", id: "a", conversation: "c", text: "one" });
    net.last.says(answer);
  }
  line.send({ type: "typing.set", conversation: "c", on: true });
  await tick(29_999);
  assert.equal(line.state, "open");
});

test("after a reconnect one heart beats", async (t) => {
  const { net, tick } = await welcomed(t);
  net.last.ends(1006);
  await tick(250);
  net.last.accept();
  net.last.says(welcome());
  await tick(30_000);
  assert.equal(net.last.sent.filter((frame) => frame.type === "ping").length, 1);
});

test("a welcome without a heartbeat beats every half minute", async (t) => {
  const { net, tick } = await dialled(t);
  net.last.accept();
  net.last.says({ type: "conversations", items: [] });
  await tick(29_999);
  assert.equal(net.last.last("ping"), undefined);
  await tick(1);
  assert.deepEqual(net.last.last("ping"), { type: "ping" });
});

test("whoever wakes a line spares it the wait, and asks an open one whether it is there", async (t) => {
  const { net, line, page } = await welcomed(t);
  page.hidden = true;
  net.last.ends(1006);
  line.wake();
  await turns();
  assert.equal(net.sockets.length, 2);
  net.last.accept();
  net.last.says(welcome());
  line.wake();
  assert.deepEqual(net.last.sent.at(-1), { type: "ping", hidden: true });
  line.close();
  line.wake();
  await turns();
  assert.equal(net.sockets.length, 2);
});

test("a closed line is silent for good", async (t) => {
  const { net, line, told, tick, happens } = await welcomed(t);
  line.close();
  assert.deepEqual(told.at(-1), { state: "closed", code: null, retry_ms: null });
  const before = told.length;
  for (const name of ["online", "pageshow", "visibilitychange", "freeze", "resume"]) await happens(name);
  await tick(600_000);
  assert.equal(net.sockets.length, 1);
  assert.equal(net.last.readyState, 3);
  assert.equal(told.length, before);
  assert.equal(line.send({ type: "ping" }), false);
});

test("a restart says a new hello, and what the old socket still says is not heard", async (t) => {
  const { net, line, told, hellos, tick } = await welcomed(t);
  const { onmessage, onclose } = net.sockets[0];
  line.restart();
  await turns();
  assert.deepEqual(hellos, [false, false]);
  assert.equal(net.sockets.length, 2);
  const before = told.length;
  onmessage?.({ data: JSON.stringify(welcome()) });
  onclose?.({ code: 1006 });
  await tick(1_000);
  assert.equal(told.length, before);
  assert.equal(net.sockets.length, 2);
});

test("closed while its hello was being made, it dials nothing", async (t) => {
  /** @type {(hello: any) => void} */
  let made = () => {};
  const { net, line } = await dialled(t, { hello: () => new Promise((resolve) => { made = resolve; }) });
  line.close();
  made({ type: "hello" });
  await turns();
  assert.equal(net.sockets.length, 0);
});

test("closed by who hears the welcome, it passes nothing on", async (t) => {
  const { net, line, told } = await dialled(t);
  line.addEventListener("state", () => { if (line.state === "open") line.close(); });
  net.last.accept();
  net.last.says(welcome());
  assert.ok(!told.includes("welcome"));
});


/** HTTP gets through, and a stream welcomes whoever opens it. @param {Awaited<ReturnType<typeof dialled>>["http"]} http */
function streams(http) {
  /** @type {string[]} */
  const asked = [];
  http.mock.mockImplementation(/** @type {any} */ (async (/** @type {string} */ url, /** @type {any} */ { method, body }) => {
    asked.push(`${method} ${url} ${body ?? ""}`);
    const said = new TextEncoder().encode(`event: opened\ndata: {"line":"p.s"}\n\ndata: ${JSON.stringify(welcome())}\n\n`);
    return new Response(new ReadableStream({ start: (stream) => stream.enqueue(said) }));
  }));
  return asked;
}

test("after three failures in a row the line is a stream", async (t) => {
  const { net, http, line, tick } = await dialled(t);
  const asked = streams(http);
  for (const failed of [1, 2, 3]) {
    assert.equal(net.sockets.length, failed);
    net.last.ends(1006);
    await tick(1_000);
  }
  for (let turn = 0; turn < 20 && line.state !== "open"; turn += 1) await turns();
  assert.equal(line.state, "open");
  assert.equal(net.sockets.length, 3);
  assert.deepEqual(asked, [
    "OPTIONS https://chat.example/api/v1/stream/customer ",
    'POST https://chat.example/api/v1/stream/customer {"type":"hello","token":"t"}',
  ]);
});

test("a socket that opens and stays silent is enough", async (t) => {
  const { net, http, line, tick } = await dialled(t);
  streams(http);
  net.last.accept();
  await tick(15_000);
  await tick(1_000);
  for (let turn = 0; turn < 20 && line.state !== "open"; turn += 1) await turns();
  assert.equal(line.state, "open");
  assert.equal(net.sockets.length, 1);
});

test("two sockets that were welcomed and died within seconds are enough", async (t) => {
  const { net, http, line, tick } = await dialled(t);
  streams(http);
  for (const died of [1, 2]) {
    assert.equal(net.sockets.length, died);
    net.last.accept();
    net.last.says(welcome());
    net.last.ends(1006);
    await tick(1_000);
  }
  for (let turn = 0; turn < 20 && line.state !== "open"; turn += 1) await turns();
  assert.equal(line.state, "open");
  assert.equal(net.sockets.length, 2);
});

test("what the server itself ends, or what has lived, says less against sockets", async (t) => {
  const { net, http, line, tick } = await dialled(t);
  const asked = streams(http);
  t.mock.method(Date, "now", () => 1e12 + 20_000 * net.sockets.length + (line.state === "open" ? 15_000 : 0));
  for (const code of [1012, 1013, 1006, 1012, 1006]) {
    net.last.accept();
    net.last.says(welcome());
    net.last.ends(code);
    await tick(10_000);
  }
  assert.equal(net.sockets.length, 6);
  assert.deepEqual(asked, []);
});

test("what cut everything off says nothing against sockets", async (t) => {
  const { net, http, line, tick } = await dialled(t);
  for (let failed = 0; failed < 4; failed += 1) {
    net.last.ends(1006);
    await tick(1_000);
  }
  assert.equal(net.sockets.length, 5);
  streams(http);
  net.last.ends(1006);
  await tick(2_000);
  assert.equal(net.sockets.length, 6);
  net.last.accept();
  net.last.says(welcome());
  assert.equal(line.state, "open");
});

test("where another way worked for the page before, no socket is tried first", async (t) => {
  const kept = storage();
  Object.assign(globalThis, { localStorage: kept });
  t.after(() => Reflect.deleteProperty(globalThis, "localStorage"));
  const { net, http, line, tick } = await dialled(t);
  const asked = streams(http);
  net.last.accept();
  await tick(15_000);
  await tick(1_000);
  for (let turn = 0; turn < 20 && line.state !== "open"; turn += 1) await turns();
  await tick(7_000);
  net.last.ends(1006); // a look for a better way, in vain
  await turns();
  line.close();
  const tried = net.sockets.length;
  const next = new Connection({ url: "wss://chat.example/ws/customer", socketClass: net.socketClass, hello: () => ({ type: "hello" }) });
  t.after(() => next.close());
  asked.length = 0;
  next.open();
  for (let turn = 0; turn < 20 && next.state !== "open"; turn += 1) await turns();
  assert.equal(next.state, "open");
  assert.equal(net.sockets.length, tried);
  assert.deepEqual(asked.map((one) => one.split(" ")[0]), ["OPTIONS", "POST"]);
});
