// @ts-check
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { TABLE, decode } from "../../static/js/dashboard/frames.js";

const folder = new URL("../frames/", import.meta.url);
const files = readdirSync(folder).filter((name) => name.endsWith(".json"));
/** @param {string} name */
const read = (name) => JSON.parse(readFileSync(new URL(name, folder), "utf8"));

test("the table of frames is the server's", () => {
  const ours = Object.fromEntries([...TABLE].map(([code, [type, shape]]) => (
    [code, [type, shape.map((field) => (typeof field === "string" ? field : field[0]))]]
  )));
  assert.deepEqual(ours, read("_table.json"));
});

for (const file of files.filter((name) => !name.startsWith("_"))) {
  for (const [index, golden] of read(file).entries()) {
    test(`${file} ${index}: JSON and MessagePack give the whole frame`, () => {
      assert.deepEqual(plain(decode(golden.json)), golden.frame);
      assert.deepEqual(plain(decode(Buffer.from(golden.msgpack, "hex"))), golden.frame);
    });
  }
}

test("offsets count as JavaScript counts", () => {
  const [first, second] = read("delta.json");
  assert.equal(first.frame.text.length, second.frame.offset);
});

test("a frame of a later version is passed over", () => {
  assert.equal(decode('{"type":"hologram"}'), null);
  assert.equal(decode(Uint8Array.from([0x91, 0x7f])), null);
});

test("fields of a later version are passed over", () => {
  assert.deepEqual(decode(Uint8Array.from([0x93, 0x03, 0x14, 0x02])), { type: "pong", heartbeat_s: 20 });
});

/** Without the null prototypes of decoded maps. @param {unknown} value */
function plain(value) {
  return JSON.parse(JSON.stringify(value));
}
