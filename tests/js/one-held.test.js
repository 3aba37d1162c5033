// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { letGo, mayHold } from "../../static/js/wire/one-held.js";
import { browser } from "./pages.js";
import { turns } from "./socket.js";

test("two lines of one page that ask at once share its one connection, and give it back together", async () => {
  const pages = browser();
  const [here, there] = [pages.page(), pages.page()];
  Object.defineProperty(globalThis, "navigator", { value: { locks: here.locks }, configurable: true });
  const [ending, beginning] = [{}, {}];
  assert.deepEqual(await Promise.all([mayHold(ending), mayHold(beginning)]), [true, true]);
  const isFree = () => there.locks.request("chatsvc-held", { ifAvailable: true }, (/** @type {unknown} */ lock) => lock !== null);
  letGo(ending);
  assert.equal(await isFree(), false);
  letGo(beginning);
  await turns();
  assert.equal(await isFree(), true);
});
