// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { decode } from "../../static/js/wire/msgpack.js";
import { generator } from "./random.js";

/** @param {string} hex */
const bytes = (hex) => Uint8Array.from(Buffer.from(hex, "hex"));

test("every width of number reads as itself", () => {
  for (const [hex, value] of /** @type {[string, unknown][]} */ ([
    ["7f", 127], ["e0", -32], ["cc80", 128], ["cd0100", 256], ["ce00010000", 65536], ["cf000000e8d4a51000", 1e12],
    ["cfffffffffffffffff", 2n ** 64n - 1n], ["d080", -128], ["d18000", -32768], ["d280000000", -(2 ** 31)],
    ["d38000000000000000", -(2n ** 63n)], ["ca3fc00000", 1.5], ["cb3ff199999999999a", 1.1], ["c0", null], ["c2", false],
    ["c3", true],
  ])) assert.deepEqual(decode(bytes(hex)), value);
});

test("texts of every width read as themselves", () => {
  for (const length of [0, 31, 32, 255, 256, 65_535, 65_536]) {
    const text = "订".repeat(Math.floor(length / 3)) + "a".repeat(length % 3);
    assert.equal(decode(encode(text)), text);
  }
});

test("a value comes back from its bytes", () => {
  const random = generator(7);
  for (let round = 0; round < 500; round += 1) {
    const value = random.value(4);
    assert.deepEqual(JSON.parse(JSON.stringify(decode(encode(value)))), value);
  }
});

test("cut or changed bytes are refused with a typed error or read as another value, never worse", () => {
  const random = generator(8);
  for (let round = 0; round < 2_000; round += 1) {
    const given = encode(random.value(3));
    const mutated = given.slice(0, random.below(given.length + 1));
    if (mutated.length > 0) mutated[random.below(mutated.length)] = random.below(256);
    try {
      decode(mutated);
    } catch (error) {
      assert.ok(error instanceof RangeError || error instanceof TypeError, String(error));
    }
  }
});

test("length bombs, depth, bytes behind the value and bad UTF-8 are refused", () => {
  for (const hex of ["ddffffffff", "dfffffffff", "dbffffffff", "c6ffffffff", `${"91".repeat(100)}c0`, "c0c0", "a1ff", "c1", "81c001", ""]) {
    assert.throws(() => decode(bytes(hex)), (error) => error instanceof RangeError || error instanceof TypeError, hex);
  }
});

test("a key cannot reach a prototype", () => {
  const value = /** @type {Record<string, unknown>} */ (decode(encode(JSON.parse('{"__proto__": {"polluted": 1}}'))));
  assert.equal(Object.getPrototypeOf(value), null);
  assert.equal(/** @type {Record<string, unknown>} */ ({}).polluted, undefined);
});

/** Just enough of an encoder to test with. @param {any} value @returns {Uint8Array} */
function encode(value) {
  return Uint8Array.from(pieces(value).flat());
}

/** @param {any} value @returns {number[][]} */
function pieces(value) {
  if (value === null) return [[0xc0]];
  if (typeof value === "boolean") return [[value ? 0xc3 : 0xc2]];
  if (typeof value === "number") return [[0xcb, ...new Uint8Array(new Float64Array([value]).buffer).reverse()]];
  if (typeof value === "string") {
    const utf8 = [...Buffer.from(value)];
    return [utf8.length < 32 ? [0xa0 | utf8.length] : [0xdb, ...wide(utf8.length)], utf8];
  }
  if (Array.isArray(value)) return [[0xdd, ...wide(value.length)], ...value.flatMap(pieces)];
  const entries = Object.entries(value);
  return [[0xdf, ...wide(entries.length)], ...entries.flatMap(([key, item]) => [...pieces(key), ...pieces(item)])];
}

/** @param {number} count */
function wide(count) {
  return [count >>> 24, (count >>> 16) & 255, (count >>> 8) & 255, count & 255];
}
