// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { Session } from "../../static/js/widget/session.js";
import { Keep } from "../../static/js/widget/storage.js";
import { browser, identityOf, opened, said } from "./chat.js";
import { turns } from "./socket.js";

test("a new token of the same customer changes nothing; another customer begins anew", async (t) => {
  const { tab } = browser(t);
  const { chat, open, net, says, shown, sent, greet } = tab();
  chat.identify(identityOf("mia"));
  await open({ name: "Mia" });
  assert.equal(sent("hello")[0].identity, identityOf("mia"));
  assert.equal(sent("hello")[0].token, "");
  says(said(1, "Mia's"));
  chat.identify(`${identityOf("mia")}2`);
  await turns();
  assert.deepEqual([net.sockets.length, shown()], [1, ["Mia's"]]);
  chat.identify(identityOf("eve"));
  assert.deepEqual([shown(), chat.welcomed, chat.name], [[], false, ""]);
  await greet({ customer: "k2" });
  assert.equal(net.sockets.length, 2);
  assert.equal(sent("hello")[0].identity, identityOf("eve"));
  assert.equal("conversation" in sent("hello")[0], false);
});

test("logging out leaves nothing of who was here", async (t) => {
  const { chat, shown, says, greet, sent, kept, asked } = await opened(t);
  says(said(1, "private"));
  chat.say("unsent");
  chat.logout();
  assert.deepEqual(shown(), []);
  assert.equal(kept.kept.size, 0);
  await greet();
  assert.equal(sent("hello")[0].token, "v2");
  assert.deepEqual(asked, ["/api/v1/widget/session null", "/api/v1/widget/session null"]);
  assert.deepEqual(sent("message.send"), []);
});

test("a visitor's token is renewed a day before it ends, and when it was refused, for the same visitor", async (t) => {
  const { tab, kept, asked } = browser(t);
  const { session } = tab();
  const keep = (/** @type {number} */ hours) => kept.setItem("site:visitor", JSON.stringify({ token: "old", expires_at: Date.now() + hours * 3600_000 }));
  keep(25);
  assert.deepEqual(await session.credentials(false), { token: "old", identity: "" });
  keep(23);
  assert.deepEqual(await session.credentials(false), { token: "v1", identity: "" });
  keep(25);
  assert.deepEqual(await session.credentials(true), { token: "v2", identity: "" });
  assert.deepEqual(asked, ["/api/v1/widget/session old", "/api/v1/widget/session old"]);
});

test("a chat in a frame says which page is around it, as it is known by then", async (t) => {
  const { tab } = browser(t);
  let origin = "";
  const { chat, open, greet, sent } = tab({ framedBy: () => origin });
  await open();
  assert.equal("framed_by" in sent("hello")[0], false);
  origin = "https://shop.example";
  chat.relocate();
  await greet();
  assert.equal(sent("hello")[0].framed_by, "https://shop.example");
});

test("a service that gives no session is a failed attempt, and it goes on", async (t) => {
  const { tab, tick } = browser(t);
  const { chat, net } = tab();
  const { fetch } = globalThis;
  Object.assign(globalThis, { fetch: async () => new Response("", { status: 503 }) });
  chat.open();
  await turns();
  assert.deepEqual([chat.connection, net.sockets.length], ["reconnecting", 0]);
  Object.assign(globalThis, { fetch });
  await tick(1_000);
  assert.equal(net.sockets.length, 1);
});

test("a service that has given too many sessions is asked again when it said", async (t) => {
  const { tab, tick } = browser(t);
  const { chat, net } = tab();
  const { fetch } = globalThis;
  let refused = 0;
  Object.assign(globalThis, {
    fetch: async () => {
      refused += 1;
      return new Response('{"code": "slow_down", "message": "", "retry_after_s": 9}', { status: 429, headers: { "Retry-After": "9" } });
    },
  });
  chat.open();
  await turns();
  Object.assign(globalThis, { fetch });
  await tick(8_999);
  assert.deepEqual([chat.connection, net.sockets.length, refused], ["reconnecting", 0, 1]);
  await tick(1_000);
  assert.equal(net.sockets.length, 1);
});

test("a refused identity is asked for again from the page; without one the customer is a visitor", async (t) => {
  const { kept } = browser(t);
  const keep = new Keep("site:", () => kept);
  const fresh = [identityOf("mia"), ""];
  const session = new Session({ site: "s", keep, renewIdentity: async () => fresh.shift() ?? "" });
  session.identity = "expired";
  assert.deepEqual(await session.credentials(false), { token: "", identity: "expired" });
  assert.deepEqual(await session.credentials(true), { token: "", identity: identityOf("mia") });
  assert.equal(session.who, "mia");
  assert.deepEqual(await session.credentials(true), { token: "v1", identity: "" });
  assert.equal(session.who, "");
});
