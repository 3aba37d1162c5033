// @ts-check
// The frame's side of the line to the page around it. Only the allowed origins may hand us a port.

/** @typedef {{type: "open", quiet?: boolean} | {type: "closed"} | {type: "identify", identity: string} | {type: "logout", at?: number}} FromPage */

const RENEW_DEADLINE_MS = 10_000;

/** Events: `message` (detail: FromPage). Until a page of an allowed origin has handed us a port, tell() goes nowhere. */
export class PagePort extends EventTarget {
  /** Of the page that has handed us a port; "" before. */
  origin = "";
  /** @type {MessagePort | null} */
  #port = null;
  /** @type {((identity: string) => void)[]} */
  #renewals = [];
  #origins;

  /** @param {string[]} origins */
  constructor(origins) {
    super();
    this.#origins = new Set(origins);
    window.addEventListener("message", (event) => this.#shake(event));
  }

  /** @param {{type: string} & Record<string, unknown>} message */
  tell(message) {
    this.#port?.postMessage(message);
  }

  /** A new identity from the page; "" where it has none to give. @returns {Promise<string>} */
  renewIdentity() {
    if (this.#port === null) return Promise.resolve("");
    this.tell({ type: "identity?" });
    return new Promise((resolve) => {
      this.#renewals.push(resolve);
      setTimeout(() => resolve(""), RENEW_DEADLINE_MS);
    });
  }

  /** @param {MessageEvent} event */
  #shake(event) {
    const known = event.source === window.parent && this.#origins.has(event.origin);
    if (!known || event.data?.type !== "chatsvc:port" || event.ports.length !== 1) return;
    this.#port?.close();
    this.#port = event.ports[0];
    this.origin = event.origin;
    this.#port.onmessage = ({ data }) => this.#receive(data);
    this.tell({ type: "ready" });
  }

  /** @param {FromPage | {type: "identity", identity: string}} message */
  #receive(message) {
    if (message.type === "identity") for (const resolve of this.#renewals.splice(0)) resolve(String(message.identity));
    else this.dispatchEvent(new CustomEvent("message", { detail: message }));
  }
}
