// @ts-check
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { canAskForHuman, greeting, notice, speaker, waiting } from "../../static/js/widget/status.js";
import { Words } from "../../static/js/widget/words.js";
import { compose, empty } from "../../static/js/wire/timeline.js";

/** @param {string} locale */
const catalog = (locale) => JSON.parse(readFileSync(new URL(`../../static/js/widget/locale/${locale}.json`, import.meta.url), "utf8"));
const words = new Words({ en: catalog("en"), zh: catalog("zh") }, "en");
const SITE = { assistant: "Lumi", name: "Lantern" };
const line = empty("c");
const unsent = compose(line, { id: "1", text: "hello", at: 1 });
const OPEN = { connection: /** @type {const} */ ("open"), code: null, line };
/** @param {import("../../static/js/wire/frames.js").OwnerKind} kind @param {string} [name] */
const owned = (kind, name = "") => ({ ...line, owner: { ...line.owner, kind, name } });

/** @param {object} chat @param {boolean} [online] */
function said(chat, online = true) {
  const now = notice({ ...OPEN, ...chat }, online, words);
  return now && [now.tone, now.text];
}

test("while all is well nothing is said about the line", () => assert.equal(said({}), null));

test("every state of the line is told in words, with what happens to the text", () => {
  assert.deepEqual(said({}, false), ["warning", words.say("offline")]);
  assert.deepEqual(said({ line: unsent, connection: "reconnecting" }, false), ["warning", words.say("offline_kept")]);
  assert.deepEqual(said({ connection: "connecting" }), ["quiet", words.say("connecting")]);
  assert.deepEqual(said({ connection: "reconnecting" }), ["warning", words.say("reconnecting")]);
  assert.deepEqual(said({ connection: "reconnecting", line: unsent }), ["warning", words.say("reconnecting_kept")]);
});

test("a line that has ended says why; one that sleeps or was never opened says nothing", () => {
  assert.deepEqual(said({ connection: "closed", code: 4401 }), ["danger", words.say("ended_login")]);
  assert.deepEqual(said({ connection: "closed", code: 4409 }), ["danger", words.say("ended_replaced")]);
  assert.deepEqual(said({ connection: "closed", code: 4403 }), ["danger", words.say("ended")]);
  assert.equal(said({ connection: "closed", code: 4408 }), null);
  assert.equal(said({ connection: "closed", code: null }), null);
});

test("who answers now is named", () => {
  const who = (/** @type {import("../../static/js/wire/timeline.js").Timeline} */ state, assistant = true) => {
    const { author, name, state: told } = speaker({ line: state, assistant }, SITE, words);
    return [author, name, told];
  };
  assert.deepEqual(who(owned("assistant")), ["assistant", "Lumi", words.say("state_assistant")]);
  assert.deepEqual(who(owned("assistant"), false), ["queue", "Lantern", words.say("state_people")]);
  assert.deepEqual(who(owned("queue")), ["queue", "Lantern", words.say("state_queue")]);
  const availability = { online: true, opens_at: null, hours: [], timezone: "UTC" };
  assert.deepEqual(who({ ...owned("queue"), availability }), ["queue", "Lantern", words.say("state_queue")]);
  assert.deepEqual(who({ ...owned("queue"), availability: { ...availability, online: false } }), ["queue", "Lantern", words.say("state_away")]);
  assert.deepEqual(who(owned("agent", "Kim")), ["agent", "Kim", words.say("state_agent", { name: "Lantern" })]);
  assert.deepEqual(who({ ...owned("agent", "Kim"), status: "resolved" }), ["agent", "Kim", words.say("resolved_short")]);
  assert.deepEqual(who({ ...owned("queue"), status: "resolved" }), ["queue", "Lantern", words.say("resolved_short")]);
});

test("a conversation begins with a greeting and up to three questions, in the customer's language", () => {
  const site = { ...SITE, greeting: { en: "Hello", zh: "您好" }, suggestions: { en: ["a", "b", "c", "d"] } };
  const zh = new Words({ en: catalog("en"), zh: catalog("zh") }, "zh");
  assert.deepEqual(greeting(line, site, words), { name: "Lumi", text: "Hello", suggestions: ["a", "b", "c"] });
  assert.deepEqual(greeting(line, site, zh), { name: "Lumi", text: "您好", suggestions: [] });
  assert.equal(greeting(line, { ...site, greeting: { en: "Hello", zh: "" } }, zh)?.text, "Hello");
  assert.deepEqual(greeting(unsent, site, words)?.suggestions, []);
  assert.deepEqual(greeting({ ...line, items: [{ kind: "contact", place: 1, version: 1, at: 1 }] }, site, words)?.suggestions, []);
  assert.equal(greeting({ ...line, earlier: true }, site, words), null);
});

test("who waits for a person sees place, hours and address; nobody else does", () => {
  const chat = { contact: false, contactRefused: null, leavingContact: false };
  const availability = { online: false, opens_at: 5, hours: [], timezone: "UTC" };
  const queued = { ...owned("queue"), queuePosition: 2, availability };
  assert.deepEqual(waiting({ ...chat, line: queued }), { position: 2, availability, contact: false, leaving: false, refused: false });
  assert.deepEqual(waiting({ line: queued, contact: true, contactRefused: "bad_email", leavingContact: true }), { position: 2, availability, contact: true, leaving: true, refused: true });
  assert.equal(waiting({ ...chat, line: { ...queued, status: "resolved" } }), null);
  assert.equal(waiting({ ...chat, line: owned("assistant") }), null);
});

test("a person can be asked for while the assistant answers, and once", () => {
  assert.equal(canAskForHuman({ line, asking: false }), true);
  assert.equal(canAskForHuman({ line, asking: true }), false);
  assert.equal(canAskForHuman({ line: owned("agent"), asking: false }), false);
  assert.equal(canAskForHuman({ line: { ...owned("agent"), status: "resolved" }, asking: false }), true);
});
