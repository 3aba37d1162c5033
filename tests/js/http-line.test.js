// @ts-check
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { test } from "node:test";

import { EventReader } from "../../static/js/wire/event-reader.js";
import { FetchStream } from "../../static/js/wire/fetch-stream.js";
import { LongPoll } from "../../static/js/wire/long-poll.js";

const golden = JSON.parse(readFileSync(new URL("../frames/_stream.json", import.meta.url), "utf8"));
const OPENED = golden.events[0].text;
const PONG = 'data: {"type":"pong"}\n\n';
const closed = (/** @type {number} */ code) => `event: closed\ndata: {"code":${code},"reason":""}\n\n`;

test("the events of the server are read in any pieces", () => {
  const text = golden.events.map((/** @type {any} */ one) => one.text).join("");
  const expected = golden.events.filter((/** @type {any} */ one) => one.data !== null).map((/** @type {any} */ { name, data }) => ({ name, data }));
  for (const size of [1, 2, 7, 100, text.length]) {
    const reader = new EventReader();
    const read = [];
    for (let at = 0; at < text.length; at += size) read.push(...reader.read(text.slice(at, at + size)));
    assert.deepEqual(read, expected);
  }
});

/**
 * A server whose answers a test gives, in order of arrival; what was asked stands in `asked`.
 * @param {import("node:test").TestContext} t
 * @param {(request: {path: string, body: string, line: string, number: string}, response: import("node:http").ServerResponse, count: number) => void} answer
 */
async function served(t, answer) {
  /** @type {{path: string, body: string, line: string, number: string}[]} */
  const asked = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    const one = { path: request.url ?? "", body, line: String(request.headers["chatsvc-line"] ?? ""), number: String(request.headers["chatsvc-number"] ?? "") };
    asked.push(one);
    answer(one, response, asked.length);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(null)));
  t.after(() => { server.closeAllConnections(); server.close(); });
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { asked, url: `ws://127.0.0.1:${port}/ws/customer` };
}

/** @param {import("../../static/js/wire/http-line.js").HttpLine} line @param {import("node:test").TestContext} t */
function opened(line, t) {
  /** @type {any[]} */
  const told = [];
  t.after(() => line.close());
  line.onopen = () => line.send('{"type":"hello"}');
  const over = new Promise((resolve) => {
    line.onmessage = ({ data }) => { told.push(JSON.parse(data).type); if (told.length === 2) line.send('{"type":"ping"}'); };
    line.onclose = ({ code }) => { told.push(code); resolve(told); };
  });
  return { told, over };
}

test("a stream opens with hello, says what comes later in POSTs of its line, and closes with the server's code", async (t) => {
  /** @type {import("node:http").ServerResponse | null} */
  let stream = null;
  const { asked, url } = await served(t, ({ path }, response) => {
    if (path === "/api/v1/stream/customer") {
      stream = response;
      response.write(`${OPENED}:    \n\ndata: {"type":"welcome"}\n\n`);
      response.write('data: {"type":"queue"}\n\n');
    } else {
      response.writeHead(204).end();
      stream?.end(PONG + closed(4401));
    }
  });
  const { over } = opened(new FetchStream(url), t);
  assert.deepEqual(await over, ["welcome", "queue", "pong", 4401]);
  assert.deepEqual(asked, [
    { path: "/api/v1/stream/customer", body: '{"type":"hello"}', line: "", number: "" },
    { path: "/api/v1/frames/customer", body: '{"type":"ping"}', line: "p.secret", number: "1" },
  ]);
});

test("a stream that breaks off without a word is a lost line", async (t) => {
  const { url } = await served(t, (_, response) => response.end(`${OPENED}data: {"type":"welcome"}\n\n`));
  assert.deepEqual(await opened(new FetchStream(url), t).over, ["welcome", 1006]);
});

test("a stream that is refused is a lost line", async (t) => {
  const { url } = await served(t, (_, response) => response.writeHead(503).end());
  assert.deepEqual(await opened(new FetchStream(url), t).over, [1006]);
});

test("polls are counted, and one that was lost is asked for again under its number", async (t) => {
  const answers = [`${OPENED}data: {"type":"welcome"}\n\n`, null, 'data: {"type":"queue"}\n\n', PONG + closed(1012)];
  const { asked, url } = await served(t, ({ path }, response) => {
    if (path === "/api/v1/frames/customer") return void response.writeHead(204).end();
    const answer = answers.shift();
    if (answer === null) response.destroy();
    else response.end(answer);
  });
  assert.deepEqual(await opened(new LongPoll(url), t).over, ["welcome", "queue", "pong", 1012]);
  const polls = asked.filter(({ path }) => path === "/api/v1/poll/customer").map(({ line, number }) => [line, number]);
  assert.deepEqual(polls, [["", ""], ["p.secret", "2"], ["p.secret", "2"], ["p.secret", "3"]]);
});

test("a line that the server does not know any more is lost", async (t) => {
  const { url } = await served(t, (_, response, count) => {
    if (count === 1) response.end(`${OPENED}data: {"type":"welcome"}\n\n`);
    else response.writeHead(404).end();
  });
  assert.deepEqual(await opened(new LongPoll(url), t).over, ["welcome", 1006]);
});

test("frames are posted one after the other in their order, and again where it is not known that they arrived", async (t) => {
  /** @type {string[]} */
  const arrived = [];
  /** @type {import("node:http").ServerResponse | null} */
  let stream = null;
  const { asked, url } = await served(t, ({ path, body }, response, count) => {
    if (path === "/api/v1/stream/customer") {
      stream = response;
      return void response.write(`${OPENED}data: {"type":"welcome"}\n\n`);
    }
    if (count === 2) return void response.destroy();
    if (count === 3) return void response.writeHead(503).end();
    arrived.push(...body.split("\n"));
    response.writeHead(204).end();
    if (arrived.length === 3) stream?.end(closed(1012));
  });
  const line = new FetchStream(url);
  const { over } = opened(line, t);
  const hear = line.onmessage;
  line.onmessage = (event) => {
    hear?.(event);
    for (const number of [1, 2, 3]) line.send(`{"n":${number}}`);
  };
  assert.deepEqual(await over, ["welcome", 1012]);
  assert.deepEqual(arrived, ['{"n":1}', '{"n":2}', '{"n":3}']);
  assert.deepEqual(asked.slice(1).map(({ number }) => number), ["1", "1", "1", "2"]);
});
