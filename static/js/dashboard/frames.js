// @ts-check
/** The frames that only agents get, beside those that everybody gets. */

import { NEEDED, TABLE as SHARED, decoder, live, owner, page, summary } from "../wire/frames.js";

/** @typedef {import("../wire/frames.js").Shape} Shape */

/** @type {Shape} */
const order = [
  "number", "status", "placed_on", ["items", []], ["total", ""], ["carrier", ""], ["tracking", ""], ["eta", ""],
];
/** @type {Shape} */
const panel = [
  "customer", "name", "verified", ["email", ""], ["attributes", {}], ["orders", [], order], ["earlier", [], summary],
  ["facts_state", "none"],
];
/** @type {Shape} */
const row = [
  "conversation", "seq", "customer", "verified", "status", ["owner", NEEDED, owner], "last_line", "last_author", "at",
  "locale", "site", ["waiting_since", null],
];
/** @type {Shape} */
const agent = ["id", "name", "online", ["teams", []]];
/** @type {Shape} */
const stage = ["name", "start_ms", "ms"];
/** What an agent's socket brings. @type {import("../wire/frames.js").Table} */
export const TABLE = new Map([
  ...SHARED,
  [14, ["inbox", [
    ["me", NEEDED, agent], ["rows", NEEDED, row], ["agents", NEEDED, agent], "heartbeat_s", "now",
  ]]],
  [15, ["inbox.row", [["row", NEEDED, row]]]],
  [16, ["watching", [
    ["row", NEEDED, row], ["page", NEEDED, page], ["panel", NEEDED, panel], ["live", null, live],
    ["stages", [], stage], ["marks", {}], ["turn", null], ["part", null], ["painted_ms", null], ["added_ms", null],
  ]]],
  [17, ["waterfall", [
    "conversation", "turn", ["stages", NEEDED, stage], ["marks", {}], ["part", 1], ["painted_ms", null],
    ["added_ms", null],
  ]]],
  [18, ["presence", [["agents", NEEDED, agent]]]],
  [19, ["panel", ["conversation", ["panel", NEEDED, panel]]]],
]);

export const decode = decoder(TABLE);
