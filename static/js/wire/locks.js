// @ts-check
// Locks that the pages of this browser share: a page that ends, or is killed, lets go of its own.

/** @typedef {{ifAvailable?: boolean, steal?: boolean, signal?: AbortSignal}} Claim */

/**
 * Resolves, once the lock is ours, with what lets go of it; with null where `ifAvailable` and it is not. Rejects where
 * locks are denied, or when `signal` ends the wait.
 * @param {string} name
 * @param {Claim} claim
 * @param {() => void} [stolen]  another page took it from us
 * @returns {Promise<(() => void) | null>}
 */
export function hold(name, claim, stolen = () => {}) {
  return new Promise((resolve, reject) => {
    let ours = false;
    const held = navigator.locks.request(name, claim, (lock) => {
      if (lock === null) return resolve(null);
      ours = true;
      return new Promise((/** @type {(value?: undefined) => void} */ release) => resolve(release));
    });
    held.catch((error) => (ours ? stolen() : reject(error)));
  });
}
