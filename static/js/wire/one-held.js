// @ts-check
// One held connection a browser: over HTTP/1.1 an origin has six for all its tabs.

const NAME = "chatsvc-held";

/** @type {(() => void) | null} */
let release = null;

/** Whether this page may keep a connection waiting: no other page of this browser does. It may until `letGo`. */
export async function mayHold() {
  const locks = globalThis.navigator?.locks;
  if (release !== null || locks === undefined) return true;
  return new Promise((/** @type {(may: boolean) => void} */ resolve) => {
    locks.request(NAME, { ifAvailable: true }, (lock) => {
      resolve(lock !== null);
      if (lock !== null) return new Promise((/** @type {(value?: undefined) => void} */ done) => { release = done; });
    }).catch(() => resolve(true)); // denied with the storage: nobody to share with
  });
}

/** Another page may. */
export function letGo() {
  release?.();
  release = null;
}
