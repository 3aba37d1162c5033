// @ts-check
// A random conversation as its server would send it, what a bad line makes of it, and the server's answers to fetches.

import { decode } from "../../static/js/wire/frames.js";

/** @typedef {import("../../static/js/wire/frames.js").ServerFrame} ServerFrame */
/** @typedef {import("../../static/js/wire/frames.js").EventFrame} EventFrame */

/** @param {object} frame */
const frameOf = (frame) => /** @type {ServerFrame} */ (decode(JSON.stringify(frame)));

export class Script {
  /** @param {ReturnType<typeof import("./random.js").generator>} random */
  constructor(random) {
    this.random = random;
    /** @type {ServerFrame[]} */
    this.frames = [];
    this.seq = 0;
    this.handle = 0;
    const steps = 4 + random.below(10);
    for (let step = 0; step < steps; step += 1) random.pick([() => this.say(), () => this.turn(), () => this.own(), () => this.hide()])();
  }

  /** @param {string} kind @param {object} fields */
  event(kind, fields) {
    this.seq += 1;
    this.frames.push(frameOf({ type: "event", conversation: "c", seq: this.seq, kind, at: this.seq, ...fields }));
    return this.seq;
  }

  say() {
    const place = this.seq + 1;
    const message = { id: `m${place}`, place, author: "customer", name: "", text: `q${place}`, at: place };
    this.event("message", { message });
    if (this.random.below(5) === 0) this.event("message_removed", { message: { ...message, text: "", state: "removed" } });
  }

  own() {
    this.event("owner", { owner: { kind: this.random.pick(["assistant", "agent"]), name: `o${this.seq}`, version: this.seq } });
    if (this.random.below(2) === 0) this.event("status", { status: this.random.pick(["open", "resolved"]) });
  }

  hide() {
    this.event("hidden", {});
  }

  turn() {
    const turn = `u${this.seq}`;
    this.handle += 1;
    const handle = this.handle;
    const place = this.event("turn_opened", { turn, part: 1 });
    this.frames.push(frameOf({ type: "turn.started", conversation: "c", turn, part: 1, handle, place }));
    let text = "";
    const pieces = this.random.below(6);
    for (let index = 0; index < pieces; index += 1) {
      const piece = this.random.pick(["a", "订单", "👩‍👧", "word "]);
      this.frames.push(frameOf({ type: "delta", handle, offset: text.length, text: piece }));
      text += piece;
      if (this.random.below(6) === 0) this.say();
    }
    const kept = this.random.below(4) === 0 ? "" : text;
    this.frames.push(frameOf({ type: "turn.ended", handle, end: kept ? "finished" : "superseded", length: kept.length }));
    if (kept) this.event("message", { message: { id: `a${place}`, place, author: "assistant", name: "L", text: kept, at: place, turn, part: 1 } });
  }

  /** Some lost, some twice, some late: each with how many frames the server had sent by then. */
  disturbed() {
    /** @type {{when: number, frame: ServerFrame, sent: number}[]} */
    const arrivals = [];
    this.frames.forEach((frame, index) => {
      const copies = this.random.pick([0, 1, 1, 1, 1, 2]);
      for (let copy = 0; copy < copies; copy += 1) {
        const late = this.random.below(3) === 0 ? this.random.below(6) : 0;
        arrivals.push({ when: index + late, frame, sent: index + late + 1 });
      }
    });
    return arrivals.sort((a, b) => a.when - b.when);
  }

  /** @param {number} after @param {number} sent */
  history(after, sent) {
    const { page, live } = this.snapshot(after, sent);
    return frameOf({ type: "history", page, after, live });
  }

  /** @param {{seq: number}} state */
  welcome(state) {
    const { page, live } = this.snapshot(state.seq, this.frames.length);
    const last = /** @param {"owner" | "status"} kind */ (kind) => (
      /** @type {EventFrame | undefined} */ (this.frames.findLast((frame) => frame.type === "event" && frame.kind === kind))
    );
    return frameOf({
      type: "welcome", conversation: "c", customer: "k", name: "", verified: false, status: last("status")?.status ?? "open",
      owner: last("owner")?.owner ?? { kind: "assistant", name: "Lumi" }, page, assistant: true,
      availability: { online: true }, heartbeat_s: 30, now: 0, live,
    });
  }

  /** The projection of what was sent, as the server gives it: each message once, as it stands. @param {number} after @param {number} sent */
  snapshot(after, sent) {
    /** @type {Map<number, EventFrame>} */
    const events = new Map();
    /** @type {{turn: string, part: number, handle: number, place: number, text: string} | null} */
    let live = null;
    let upto = 0;
    for (const frame of this.frames.slice(0, sent)) {
      if (frame.type === "event") {
        upto = frame.seq;
        if (frame.seq > after) events.set(frame.message?.place ?? frame.seq, frame);
      }
      if (frame.type === "turn.started") live = { turn: frame.turn, part: 1, handle: frame.handle, place: frame.place, text: "" };
      if (frame.type === "delta" && live) live.text += frame.text;
      if (frame.type === "turn.ended") live = null;
    }
    const inOrder = [...events].sort(([a], [b]) => a - b).map(([, event]) => event);
    return { page: { conversation: "c", epoch: "e", upto, events: inOrder, after }, live };
  }
}
