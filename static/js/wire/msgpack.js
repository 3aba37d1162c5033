// @ts-check
// MessagePack → JavaScript, for the server's frames. No DOM, no network.
// Every count is checked against the bytes that are left before anything is allocated.

const MAX_DEPTH = 64;
const text = new TextDecoder("utf-8", { fatal: true });

/**
 * One value, which must fill `bytes` exactly.
 *
 * Maps become objects without a prototype; integers beyond 2^53 become BigInt; binary becomes Uint8Array.
 * @param {ArrayBuffer | Uint8Array} bytes
 * @returns {unknown}
 * @throws {RangeError | TypeError} where the bytes are cut, too deep, not UTF-8, or hold an extension type
 */
export function decode(bytes) {
  const reader = new Reader(bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes));
  const value = reader.value(0);
  if (reader.left() > 0) throw new RangeError("bytes after the value");
  return value;
}

class Reader {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
  }

  left() {
    return this.bytes.length - this.at;
  }

  /** @param {number} count @returns {number} the offset of `count` bytes, now taken */
  take(count) {
    if (count > this.left()) throw new RangeError("the value is cut short");
    const start = this.at;
    this.at += count;
    return start;
  }

  /** @param {number} depth @returns {unknown} */
  value(depth) {
    if (depth > MAX_DEPTH) throw new RangeError("nested too deep");
    const head = this.view.getUint8(this.take(1));
    if (head < 0x80) return head;
    if (head < 0x90) return this.map(head & 0x0f, depth);
    if (head < 0xa0) return this.array(head & 0x0f, depth);
    if (head < 0xc0) return this.string(head & 0x1f);
    if (head >= 0xe0) return head - 0x100;
    return this.wide(head, depth);
  }

  /** @param {number} head @param {number} depth @returns {unknown} */
  wide(head, depth) {
    const { view } = this;
    switch (head) {
      case 0xc0: return null;
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xc4: return this.binary(view.getUint8(this.take(1)));
      case 0xc5: return this.binary(view.getUint16(this.take(2)));
      case 0xc6: return this.binary(view.getUint32(this.take(4)));
      case 0xca: return view.getFloat32(this.take(4));
      case 0xcb: return view.getFloat64(this.take(8));
      case 0xcc: return view.getUint8(this.take(1));
      case 0xcd: return view.getUint16(this.take(2));
      case 0xce: return view.getUint32(this.take(4));
      case 0xcf: return whole(view.getBigUint64(this.take(8)));
      case 0xd0: return view.getInt8(this.take(1));
      case 0xd1: return view.getInt16(this.take(2));
      case 0xd2: return view.getInt32(this.take(4));
      case 0xd3: return whole(view.getBigInt64(this.take(8)));
      case 0xd9: return this.string(view.getUint8(this.take(1)));
      case 0xda: return this.string(view.getUint16(this.take(2)));
      case 0xdb: return this.string(view.getUint32(this.take(4)));
      case 0xdc: return this.array(view.getUint16(this.take(2)), depth);
      case 0xdd: return this.array(view.getUint32(this.take(4)), depth);
      case 0xde: return this.map(view.getUint16(this.take(2)), depth);
      case 0xdf: return this.map(view.getUint32(this.take(4)), depth);
      default: throw new TypeError(`byte 0x${head.toString(16)} begins nothing we read`);
    }
  }

  /** @param {number} count @returns {string} */
  string(count) {
    const start = this.take(count);
    return text.decode(this.bytes.subarray(start, start + count));
  }

  /** @param {number} count @returns {Uint8Array} */
  binary(count) {
    const start = this.take(count);
    return this.bytes.slice(start, start + count);
  }

  /** @param {number} count @param {number} depth @returns {unknown[]} */
  array(count, depth) {
    if (count > this.left()) throw new RangeError("the array is cut short");
    const items = new Array(count);
    for (let index = 0; index < count; index += 1) items[index] = this.value(depth + 1);
    return items;
  }

  /** @param {number} count @param {number} depth @returns {Record<string, unknown>} */
  map(count, depth) {
    if (count * 2 > this.left()) throw new RangeError("the map is cut short");
    const object = Object.create(null);
    for (let index = 0; index < count; index += 1) {
      const key = this.value(depth + 1);
      if (typeof key !== "string") throw new TypeError("a key is not text");
      object[key] = this.value(depth + 1);
    }
    return object;
  }
}

/** @param {bigint} value @returns {number | bigint} */
function whole(value) {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
