// @ts-check
// A visitor's browser with the widget's chat in its tabs, and what the server tells a chat.

import { Chat } from "../../static/js/widget/chat.js";
import { Session } from "../../static/js/widget/session.js";
import { Keep } from "../../static/js/widget/storage.js";
import { rows } from "../../static/js/wire/timeline.js";
import { network, turns, welcome } from "./socket.js";
import { storage } from "./storage.js";
import { clock } from "./window.js";

/** A shop's token that names its customer. @param {string} sub */
export const identityOf = (sub) => `h.${btoa(JSON.stringify({ sub }))}.s`;
/** @param {number} seq @param {string} text @param {object} [more] */
export const said = (seq, text, more = {}) => ({
  type: "event", conversation: "c", seq, kind: "message", at: seq,
  message: { id: `m${seq}`, place: seq, author: "customer", name: "", text, at: seq, ...more },
});

/** @param {number} upto @param {object[]} events @param {object} [more] */
export const page = (upto, events, more = {}) => ({ conversation: "c", epoch: "e", upto, events, ...more });

/**
 * A browser with a clock that only the test moves: storage that its tabs share, and a service that names visitors.
 * @param {import("node:test").TestContext} t
 */
export function browser(t) {
  const tick = clock(t, { apis: ["setTimeout", "setInterval"] });
  const kept = storage();
  /** @type {string[]} */
  const asked = [];
  let visitors = 0;
  Object.assign(globalThis, {
    fetch: async (/** @type {string} */ url, /** @type {{body: string}} */ { body }) => {
      const { token } = JSON.parse(body);
      asked.push(`${url} ${token}`);
      visitors += 1;
      return Response.json({ token: `v${visitors}`, expires_at: Date.now() + 30 * 24 * 3600_000 });
    },
  });
  /** @param {{share?: any, framedBy?: () => string}} [options] */
  const tab = ({ share, framedBy } = {}) => {
    const net = network();
    Object.assign(globalThis, { WebSocket: net.socketClass });
    const keep = new Keep("site:", () => kept);
    const session = new Session({ site: "s", keep, renewIdentity: async () => "" });
    let locale = "en";
    const chat = new Chat({ url: "wss://chat.example/ws/customer", session, keep, locale: () => locale, framedBy, share });
    /** @type {string[]} */
    const refusals = [];
    chat.addEventListener("refused", (event) => refusals.push(/** @type {CustomEvent} */ (event).detail));
    const shown = () => rows(chat.line).map((row) => {
      if (row.kind === "message") return row.message.text;
      return row.kind === "pending" ? `${row.pending.text} (${row.pending.error ?? row.pending.state})` : row.kind;
    });
    /** @param {object} [more] */
    const greet = async (more) => {
      await turns();
      net.last.accept();
      net.last.says(welcome(more));
    };
    /** @param {object} [more] */
    const open = async (more) => {
      chat.open();
      await greet(more);
    };
    t.after(() => chat.logout());
    return {
      chat, net, shown, greet, open, session, refusals, says: (/** @type {object} */ frame) => net.last.says(frame),
      sent: (/** @type {string} */ type) => net.last.sent.filter((frame) => frame.type === type), speak: (/** @type {string} */ now) => { locale = now; },
    };
  };
  return { tab, tick, kept, asked };
}

/** An open chat of a visitor. @param {import("node:test").TestContext} t */
export async function opened(t) {
  const all = browser(t);
  const tab = all.tab();
  await tab.open();
  return { ...all, ...tab };
}
