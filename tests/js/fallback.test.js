// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { fallback } from "../../static/js/wire/fallback.js";
import { network, turns, welcome } from "./socket.js";
import { storage } from "./storage.js";
import { clock, listening } from "./window.js";

/**
 * A socket, a stream and polls, each with its server's end in the test's hands, on a clock that only tick() moves.
 * @param {import("node:test").TestContext} t
 */
async function ways(t) {
  t.mock.method(globalThis, "fetch", async () => new Response());
  const tick = clock(t, { apis: ["setTimeout", "Date"], now: 1_000_000 });
  const happens = listening(new EventTarget());
  Object.assign(globalThis, { localStorage: storage() });
  const [socket, stream, poll] = [network(), network(), network()];
  const load = () => fallback("wss://chat.example/ws/customer", socket.socketClass, "chatsvc-way", { others: [stream.socketClass, poll.socketClass], random: () => 0.5 });
  let dial = await load();
  /** @type {(number | string)[]} */
  const told = [];
  const line = () => {
    const made = new dial("wss://chat.example/ws/customer", ["json"]);
    made.onclose = ({ code }) => void told.push(code);
    made.onmessage = ({ data }) => void told.push(JSON.parse(data).type);
    return made;
  };
  const counts = () => [socket, stream, poll].map((one) => one.sockets.length);
  const reload = async () => { dial = await load(); };
  return { socket, stream, poll, line, told, tick, happens, counts, reload };
}

/** @param {ReturnType<typeof network>} net */
function answer(net) {
  net.last.accept();
  net.last.says({ type: "refused", code: "hello_missing", message: "" });
}

test("where HTTP does not get through either there is no other way, and of one there is no other", async (t) => {
  const { socketClass } = network();
  let reachable = false;
  t.mock.method(globalThis, "fetch", async (/** @type {string} */ url, /** @type {any} */ { method }) => {
    assert.deepEqual([url, method], ["https://chat.example/api/v1/stream/customer", "OPTIONS"]);
    if (!reachable) throw new TypeError("offline");
    return new Response();
  });
  const make = (/** @type {typeof WebSocket} */ of) => fallback("wss://chat.example/ws/customer", of, "chatsvc-way");
  assert.equal(await make(socketClass), socketClass);
  reachable = true;
  // What is back now may be back for sockets as well.
  assert.equal(await make(socketClass), socketClass);
  const made = await make(socketClass);
  assert.notEqual(made, socketClass);
  assert.equal(await make(made), made);
});

test("first a stream, and what it hears and says passes through", async (t) => {
  const { stream, line, told, counts } = await ways(t);
  const made = line();
  assert.deepEqual(counts(), [0, 1, 0]);
  assert.deepEqual([stream.last.url, stream.last.protocols], ["wss://chat.example/ws/customer", ["json"]]);
  stream.last.accept();
  assert.equal(made.readyState, 1);
  made.send('{"type":"hello"}');
  assert.deepEqual(stream.last.sent, [{ type: "hello" }]);
  stream.last.says(welcome());
  assert.deepEqual(told, ["welcome"]);
});

test("a stream that fails or dies young gives way to polls, and polls that fail to a socket again", async (t) => {
  const { stream, poll, line, told, counts } = await ways(t);
  line();
  stream.last.accept();
  stream.last.says(welcome());
  stream.last.ends(1006);
  assert.deepEqual(told, ["welcome", 1006]);
  line();
  assert.deepEqual(counts(), [0, 1, 1]);
  poll.last.ends(1006);
  line();
  assert.deepEqual(counts(), [1, 1, 1]);
});

test("a line that lived is tried the same way again, three times", async (t) => {
  const { socket, stream, line, tick, counts } = await ways(t);
  line();
  stream.last.accept();
  stream.last.says(welcome());
  await tick(5_000);
  socket.last.ends(1006);
  await tick(5_000);
  stream.last.ends(1006);
  for (const attempt of [2, 3, 4]) {
    line();
    assert.deepEqual(counts(), [1, attempt, 0]);
    stream.last.ends(1006);
  }
  line();
  assert.deepEqual(counts(), [1, 4, 1]);
});

test("what the server itself ends says nothing against the way", async (t) => {
  const { stream, line, counts } = await ways(t);
  for (const code of [1012, 1013, 4401, 4429]) {
    line();
    stream.last.ends(code);
  }
  assert.deepEqual(counts(), [0, 4, 0]);
});

test("a line that stays silent until it is given up has failed; one that is given up at once has not", async (t) => {
  const { line, tick, counts } = await ways(t);
  line().close();
  const silent = line();
  assert.deepEqual(counts(), [0, 2, 0]);
  await tick(4_000);
  silent.close();
  line();
  assert.deepEqual(counts(), [0, 2, 1]);
});

test("once a socket answers, the line ends and the next one is a socket", async (t) => {
  const { socket, stream, line, told, tick, counts } = await ways(t);
  line();
  stream.last.accept();
  stream.last.says(welcome());
  await tick(4_999);
  assert.deepEqual(counts(), [0, 1, 0]);
  await tick(1);
  assert.deepEqual(counts(), [1, 1, 0]);
  socket.last.accept();
  await turns();
  assert.deepEqual(socket.last.sent, [{ type: "ping" }]);
  assert.deepEqual(told, ["welcome"]);
  answer(socket);
  await turns();
  assert.equal(socket.last.readyState, 3);
  assert.deepEqual(told, ["welcome", 4000]);
  assert.equal(stream.last.readyState, 3);
  line();
  assert.deepEqual(counts(), [2, 1, 0]);
});

test("a socket that opens and swallows what is said is no better, and is tried ever more rarely", async (t) => {
  const { socket, stream, line, told, tick } = await ways(t);
  line();
  stream.last.accept();
  stream.last.says(welcome());
  for (const [probe, wait] of [5_000, 60_000, 120_000].entries()) {
    await tick(wait);
    assert.equal(socket.sockets.length, probe + 1);
    socket.last.accept();
    await tick(5_000);
    assert.equal(socket.last.readyState, 3);
  }
  assert.deepEqual(told, ["welcome"]);
});

test("a network that came back is tried at once", async (t) => {
  const { socket, stream, line, told, happens } = await ways(t);
  line();
  stream.last.accept();
  stream.last.says(welcome());
  await happens("online");
  answer(socket);
  await turns();
  assert.deepEqual(told, ["welcome", 4000]);
});

for (const heardFirst of [true, false]) {
  test(`a look goes on when its line is lost, and the next one obeys it, heard ${heardFirst ? "before" : "after"} its end`, async (t) => {
    const { socket, stream, line, told, tick, happens, counts } = await ways(t);
    const lost = line();
    stream.last.accept();
    stream.last.says(welcome());
    await tick(1_000);
    await happens("online");
    lost.close();
    const hears = async () => {
      stream.last.accept();
      stream.last.says(welcome());
      await tick(0);
    };
    line();
    if (heardFirst) await hears();
    assert.deepEqual(counts(), [1, 2, 0]);
    socket.last.accept();
    answer(socket);
    await turns();
    if (!heardFirst) await hears();
    assert.deepEqual([told.includes(4000), stream.last.readyState], [true, 3]);
    line();
    assert.deepEqual(counts(), [2, 2, 0]);
  });
}

test("a look in vain takes nobody back to the way that failed meanwhile", async (t) => {
  const { socket, stream, poll, line, tick, counts } = await ways(t);
  line();
  stream.last.accept();
  stream.last.says(welcome());
  await tick(5_000);
  assert.deepEqual(counts(), [1, 1, 0]);
  stream.last.ends(1006);
  line();
  poll.last.accept();
  poll.last.says(welcome());
  socket.last.ends(1006);
  await turns();
  assert.equal(poll.last.readyState, 1);
  line();
  assert.deepEqual(counts().slice(1), [1, 2]);
});

test("a network that came back during a look is looked at again", async (t) => {
  const { socket, stream, line, tick, happens, counts } = await ways(t);
  line();
  stream.last.accept();
  stream.last.says(welcome());
  await tick(5_000);
  await happens("online");
  socket.last.ends(1006);
  await turns();
  assert.deepEqual(counts(), [2, 1, 0]);
});

test("a network that came back between two lines is tried once the next one is heard", async (t) => {
  const { socket, stream, line, tick, happens, counts } = await ways(t);
  const lost = line();
  stream.last.accept();
  stream.last.says(welcome());
  await tick(1_000);
  lost.close();
  await happens("online");
  assert.deepEqual(counts(), [0, 1, 0]);
  line();
  stream.last.accept();
  stream.last.says(welcome());
  await tick(0);
  assert.deepEqual(counts(), [1, 2, 0]);
  assert.equal(socket.last.readyState, 0);
});

test("polls look for a stream where there is no socket", async (t) => {
  const { socket, stream, poll, line, tick, counts } = await ways(t);
  line();
  stream.last.ends(1006);
  line();
  poll.last.accept();
  poll.last.says(welcome());
  await tick(60_000);
  socket.last.ends(1006);
  await turns();
  answer(stream);
  await turns();
  assert.equal(poll.last.readyState, 3);
  line();
  assert.deepEqual(counts(), [1, 3, 1]);
});

test("a socket that was promoted and dies young is a stream at once, and the next look is later", async (t) => {
  const { socket, stream, line, tick, counts } = await ways(t);
  line();
  stream.last.accept();
  stream.last.says(welcome());
  await tick(60_000);
  answer(socket);
  await turns();
  line();
  socket.last.accept();
  socket.last.says(welcome());
  socket.last.ends(1006);
  line();
  assert.deepEqual(counts(), [2, 2, 0]);
  stream.last.accept();
  stream.last.says(welcome());
  await tick(59_999);
  assert.equal(socket.sockets.length, 2);
  await tick(1);
  assert.equal(socket.sockets.length, 3);
});

test("a line that was closed looks for nothing", async (t) => {
  const { stream, line, tick, happens, counts } = await ways(t);
  const made = line();
  stream.last.accept();
  stream.last.says(welcome());
  made.close();
  await happens("online");
  await tick(600_000);
  assert.deepEqual(counts(), [0, 1, 0]);
});

test("the way that works is taken by the next page at once, and looks for a better one when this page would have", async (t) => {
  const { socket, stream, poll, line, tick, counts, reload } = await ways(t);
  line();
  stream.last.ends(1006);
  const first = line();
  poll.last.accept();
  poll.last.says(welcome());
  await tick(5_000);
  socket.last.ends(1006);
  await turns();
  stream.last.ends(1006);
  await turns();
  await tick(40_000);
  first.close();
  await reload();
  line();
  assert.deepEqual(counts(), [1, 2, 2]);
  poll.last.accept();
  poll.last.says(welcome());
  await tick(19_999);
  assert.deepEqual(counts(), [1, 2, 2]);
  await tick(1);
  answer(socket);
  await turns();
  assert.deepEqual(counts(), [2, 2, 2]);
});

test("once a socket carries the line, nothing is kept of the ways before", async (t) => {
  const { socket, stream, line, tick, happens, reload, counts } = await ways(t);
  line();
  stream.last.accept();
  stream.last.says(welcome());
  assert.equal(localStorage.getItem("chatsvc-way"), null);
  await tick(5_000);
  socket.last.ends(1006);
  await turns();
  assert.notEqual(localStorage.getItem("chatsvc-way"), null);
  await happens("online");
  answer(socket);
  await turns();
  line();
  assert.equal(localStorage.getItem("chatsvc-way"), null);
  await reload();
  line();
  assert.deepEqual(counts(), [3, 2, 0]);
});

test("what another version has kept is as good as nothing", async (t) => {
  const { line, counts, reload } = await ways(t);
  for (const kept of ["{", "null", '{"at":7,"pause_ms":1,"probeAt":0}', '{"at":2}', '{"at":"2","pause_ms":"x","probeAt":0}']) {
    localStorage.setItem("chatsvc-way", kept);
    await reload();
    line();
  }
  assert.deepEqual(counts(), [0, 5, 0]);
});
