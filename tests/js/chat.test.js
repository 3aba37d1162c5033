// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { browser, opened, page, said } from "./chat.js";
import { welcome } from "./socket.js";

test("hello says who and in which language, and after an interruption where to go on", async (t) => {
  const { sent, says, net, tick, greet } = await opened(t);
  assert.deepEqual(sent("hello"), [{ type: "hello", token: "v1", identity: "", locale: "en" }]);
  says(said(1, "one"));
  net.last.ends(1006);
  await tick(1_000);
  await greet({ page: page(1, [], { after: 1 }) });
  assert.deepEqual(sent("hello"), [{ type: "hello", token: "v1", identity: "", locale: "en", conversation: "c", epoch: "e", seq: 1 }]);
});

test("stopping names the turn and how much of it was seen", async (t) => {
  const { chat, says, sent } = await opened(t);
  chat.stop(3);
  says({ type: "turn.started", conversation: "c", turn: "u", part: 1, handle: 1, place: 1 });
  chat.stop(3);
  assert.deepEqual(sent("turn.stop"), [{ type: "turn.stop", conversation: "c", turn: "u", painted: 3 }]);
});

test("a person is asked for once, also over an interruption, until the server has answered", async (t) => {
  const { chat, says, sent, net, tick, greet, refusals } = await opened(t);
  chat.askForHuman();
  chat.askForHuman();
  const [{ id }] = sent("handoff.request");
  assert.equal(sent("handoff.request").length, 1);
  assert.equal(chat.asking, true);
  net.last.ends(1006);
  await tick(1_000);
  await greet();
  assert.deepEqual(sent("handoff.request"), [{ type: "handoff.request", id, conversation: "c" }]);
  says({ type: "ack", id, seq: 1, conversation: "c", at: 1 });
  assert.equal(chat.asking, false);
  chat.askForHuman();
  const again = sent("handoff.request").at(-1).id;
  assert.notEqual(again, id);
  says({ type: "refused", code: "not_allowed", message: "", id: again, of: "handoff.request" });
  assert.equal(chat.asking, false);
  assert.deepEqual(refusals, ["not_allowed"]);
});

test("an address that was refused does not count as left; one that was taken does", async (t) => {
  const { chat, says, sent, refusals } = await opened(t);
  chat.leaveContact("mia");
  assert.equal(chat.leavingContact, true);
  says({ type: "refused", code: "bad_email", message: "", id: sent("contact.leave")[0].id, of: "contact.leave" });
  assert.deepEqual([chat.contact, chat.contactRefused, chat.leavingContact], [false, "bad_email", false]);
  assert.deepEqual(refusals, []);
  chat.leaveContact("mia@a.example");
  assert.equal(chat.contactRefused, null);
  says({ type: "ack", id: sent("contact.leave")[1].id, seq: 1, conversation: "c", at: 1 });
  assert.deepEqual([chat.contact, chat.leavingContact], [true, false]);
});

test("an address left in another tab is known here", async (t) => {
  const { chat, says } = await opened(t);
  says({ type: "event", conversation: "other", seq: 1, kind: "contact", at: 1 });
  assert.equal(chat.contact, false);
  says({ type: "event", conversation: "c", seq: 1, kind: "contact", at: 1 });
  assert.equal(chat.contact, true);
});

test("a new conversation takes the place of the one shown when the server has begun it", async (t) => {
  const { chat, says, sent, shown, net } = await opened(t);
  says(said(1, "old"));
  assert.equal(chat.startNew(), true);
  assert.deepEqual(sent("conversation.new"), [{ type: "conversation.new" }]);
  assert.deepEqual(shown(), ["old"]);
  says(welcome({ conversation: "d", page: { ...page(0, []), conversation: "d" } }));
  assert.deepEqual([shown(), chat.line.id], [[], "d"]);
  assert.equal(chat.show("c"), true);
  assert.deepEqual(sent("conversation.open"), [{ type: "conversation.open", conversation: "c" }]);
  net.last.ends(1006);
  assert.equal(chat.startNew(), false);
});

test("a switch that was refused changes nothing", async (t) => {
  const { chat, says, shown, refusals, net, tick, sent, greet } = await opened(t);
  says(said(1, "old"));
  chat.show("gone");
  says({ type: "refused", code: "not_found", message: "", of: "conversation.open" });
  assert.deepEqual([shown(), refusals], [["old"], ["not_found"]]);
  net.last.ends(1006);
  await tick(1_000);
  await greet({ page: page(1, [], { after: 1 }) });
  assert.equal(sent("hello")[0].conversation, "c");
  assert.deepEqual(shown(), ["old"]);
});

test("an interrupted switch begins with a hello that resumes nothing", async (t) => {
  const { chat, net, tick, sent, greet } = await opened(t);
  chat.startNew();
  net.last.ends(1006);
  await tick(1_000);
  await greet();
  assert.equal("conversation" in sent("hello")[0], false);
});

test("the list of earlier conversations is asked for and shown", async (t) => {
  const { chat, says, sent, net } = await opened(t);
  assert.equal(chat.listEarlier(), true);
  assert.equal(chat.earlier, null);
  assert.equal(sent("conversation.list").length, 1);
  says({ type: "conversations", items: [{ id: "c", status: "open", last_line: "hi", at: 1, owner: { kind: "assistant" } }] });
  assert.deepEqual(chat.earlier?.map(({ id }) => id), ["c"]);
  net.last.ends(1006);
  assert.equal(chat.listEarlier(), false);
});

test("a hole in the conversation is asked for after a moment, and again while it stays", async (t) => {
  const { says, sent, shown, tick } = await opened(t);
  says(said(2, "two"));
  await tick(99);
  assert.deepEqual(sent("history.fetch"), []);
  await tick(1);
  assert.deepEqual(sent("history.fetch"), [{ type: "history.fetch", conversation: "c", after: 0 }]);
  await tick(1_500);
  assert.equal(sent("history.fetch").length, 2);
  says({ type: "history", page: page(2, [said(1, "one"), said(2, "two")], { after: 0 }), after: 0 });
  assert.deepEqual(shown(), ["one", "two"]);
  await tick(10_000);
  assert.equal(sent("history.fetch").length, 2);
});

test("a hole that closes by itself is not asked for", async (t) => {
  const { says, sent, tick } = await opened(t);
  says(said(2, "two"));
  says(said(1, "one"));
  await tick(10_000);
  assert.deepEqual(sent("history.fetch"), []);
});

test("older pages are asked for one at a time, until there are none", async (t) => {
  const { tab } = browser(t);
  const { chat, open, says, sent, shown } = tab();
  await open({ page: page(9, [said(9, "nine")], { earlier: true }) });
  chat.loadOlder();
  chat.loadOlder();
  assert.deepEqual(sent("history.fetch"), [{ type: "history.fetch", conversation: "c", before: 9 }]);
  says({ type: "history", page: page(9, [said(5, "five")], { earlier: true }), before: 9 });
  assert.equal(chat.loadingOlder, false);
  const all = chat.loadAll();
  assert.equal(sent("history.fetch").at(-1).before, 5);
  says({ type: "history", page: page(9, [said(1, "one")], { earlier: false }), before: 5 });
  await all;
  assert.deepEqual(shown(), ["one", "five", "nine"]);
  chat.loadOlder();
  assert.equal(sent("history.fetch").length, 2);
});

test("an older page that is refused for now is asked for again when it may be", async (t) => {
  const { tab, tick } = browser(t);
  const { chat, open, says, sent, refusals } = tab();
  await open({ page: page(9, [said(9, "nine")], { earlier: true }) });
  const all = chat.loadAll();
  const refused = { type: "refused", message: "", id: null, of: "history.fetch", conversation: "c" };
  says({ ...refused, code: "slow_down", retry_after_s: 0.5 });
  await tick(499);
  assert.equal(sent("history.fetch").length, 1);
  await tick(1);
  assert.equal(sent("history.fetch").length, 2);
  says({ ...refused, code: "unavailable", retry_after_s: null });
  await tick(3_000);
  assert.equal(sent("history.fetch").length, 3);
  says({ type: "history", page: page(9, [said(5, "five")], { earlier: false }), before: 9 });
  await all;
  assert.deepEqual([refusals, chat.loadingOlder], [[], false]);
});

test("an interruption does not leave an older page waiting", async (t) => {
  const { tab, tick } = browser(t);
  const { chat, open, net, sent, greet } = tab();
  const first = { page: page(9, [said(9, "nine")], { earlier: true }) };
  await open(first);
  chat.loadOlder();
  const all = chat.loadAll();
  net.last.ends(1006);
  await all;
  await tick(1_000);
  await greet(first);
  chat.loadOlder();
  assert.equal(sent("history.fetch").length, 1);
});

test("who stopped typing without a word is forgotten after six seconds", async (t) => {
  const { chat, says, tick } = await opened(t);
  says({ type: "typing", conversation: "c", author: "agent", name: "Kim" });
  await tick(5_000);
  says({ type: "typing", conversation: "c", author: "agent", name: "Kim" });
  await tick(5_999);
  assert.deepEqual(chat.line.typing, { author: "agent", name: "Kim" });
  await tick(1);
  assert.equal(chat.line.typing, null);
});

test("our own typing is told once there is somebody to tell", async (t) => {
  const { tab } = browser(t);
  const { chat, open, sent } = tab();
  chat.tell("typing.set", { on: true });
  await open();
  assert.deepEqual(sent("typing.set"), []);
  chat.tell("typing.set", { on: true });
  chat.tell("typing.set", { on: false });
  assert.deepEqual(sent("typing.set").map(({ on, conversation }) => [on, conversation]), [[true, "c"], [false, "c"]]);
});

test("another language says a new hello and keeps the conversation", async (t) => {
  const { chat, speak, shown, says, greet, sent } = await opened(t);
  says(said(1, "one"));
  speak("zh");
  chat.relocate();
  await greet({ page: page(1, [], { after: 1 }) });
  assert.equal(sent("hello")[0].locale, "zh");
  assert.equal(sent("hello")[0].seq, 1);
  assert.deepEqual(shown(), ["one"]);
});
