// @ts-check
/** Puts the dashboard together: the socket, the state, the elements, the keys. Paints once per animation frame. */

import { Connection } from "../wire/connection.js";
import { Announcer } from "./announcer.js";
import { Words } from "./catalog.js";
import { Commands } from "./commands.js";
import { ContextPane } from "./context-pane.js";
import { ConversationView } from "./conversation-view.js";
import { Desk } from "./desk.js";
import { DeskBar } from "./desk-bar.js";
import { decode } from "./frames.js";
import { InboxList } from "./inbox-list.js";
import { MessageThread } from "./message-thread.js";
import { Preferences } from "./preferences.js";
import { ReplyComposer } from "./reply-composer.js";
import { SettingsMenu } from "./settings-menu.js";
import { ToastStack } from "./toasts.js";
import { fetchTraces } from "./traces.js";
import { nameOf } from "./view.js";

const PATIENCE_MS = 200;

/** @type {readonly [string, CustomElementConstructor][]} */
const ELEMENTS = [
  ["settings-menu", SettingsMenu],
  ["desk-bar", DeskBar],
  ["inbox-list", InboxList],
  ["message-thread", MessageThread],
  ["reply-composer", ReplyComposer],
  ["conversation-view", ConversationView],
  ["context-pane", ContextPane],
  ["toast-stack", ToastStack],
];

const { locale = "en", catalog = "", agent = "" } = document.body.dataset;
const response = await fetch(catalog);
if (!response.ok) throw new Error(`the words of the dashboard did not load: ${response.status}`);
const words = new Words(locale, await response.json());

for (const [name, element] of ELEMENTS) customElements.define(name, element);
const bar = /** @type {DeskBar} */ (document.querySelector("desk-bar"));
const list = /** @type {InboxList} */ (document.querySelector("inbox-list"));
const conversation = /** @type {ConversationView} */ (document.querySelector("conversation-view"));
const context = /** @type {ContextPane} */ (document.querySelector("context-pane"));
const toasts = /** @type {ToastStack} */ (document.querySelector("toast-stack"));
const region = /** @type {HTMLElement} */ (document.querySelector("#announcer"));

const socketUrl = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/agent`;
const line = new Connection({ url: socketUrl, hello: () => ({ type: "hello", locale }), decode });
const preferences = new Preferences(agent);
const desk = new Desk(line, preferences);
const announcer = new Announcer(words, preferences, region, (id) => desk.open(id));
const commands = new Commands({
  desk,
  preferences,
  words,
  announcer,
  line,
  bar,
  list,
  conversation,
  context,
  repaint: () => paintSoon(),
});

let scheduled = false;
let waitingFrom = performance.now();

function paint() {
  scheduled = false;
  const busy = !desk.state.inbox.loaded || desk.room?.phase === "loading";
  if (!busy) waitingFrom = Infinity;
  else if (waitingFrom === Infinity) waitFromNow();
  const patient = performance.now() - waitingFrom >= PATIENCE_MS;
  const view = { desk, words, preferences, patient, now: Date.now() + desk.state.skew_ms };
  for (const element of [bar, list, conversation, context]) element.paint(view);
}

function waitFromNow() {
  waitingFrom = performance.now();
  setTimeout(paintSoon, PATIENCE_MS);
}

function paintSoon() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(paint);
}

desk.addEventListener("change", () => {
  paintSoon();
  announcer.title(desk.queued);
  commands.followState();
});
desk.addEventListener("notice", (event) => {
  toasts.show(/** @type {CustomEvent<import("./desk.js").Notice>} */ (event).detail, words);
});
desk.addEventListener("acted", (event) => toasts.forget(/** @type {CustomEvent<string>} */ (event).detail));
desk.addEventListener("watched", async (event) => {
  const id = /** @type {CustomEvent<string>} */ (event).detail;
  const traces = await fetchTraces(id);
  if (traces !== null) desk.learn(id, traces);
});
desk.addEventListener("queued", (event) => {
  const rows = /** @type {CustomEvent<import("../wire/frames.js").InboxRow[]>} */ (event).detail;
  announcer.queued(rows, (row) => nameOf(row.customer, words));
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) desk.seen();
});
addEventListener("storage", ({ key, newValue }) => {
  if (key === preferences.unreadKey) desk.follow(newValue);
});

commands.listen();
commands.openFromAddress();
waitFromNow();
paintSoon();
setInterval(paintSoon, 1000); // the clocks
line.open();
