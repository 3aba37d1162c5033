// @ts-check
// Who we say we are: the visitor's token of this browser, or the token the shop's page gave us. Network only.

/** @typedef {import("./storage.js").Keep} Keep */
/** A visitor's token; `since` is when this browser was first given one for them. @typedef {{token: string, expires_at: number, since?: number}} Kept */

const KEY = "visitor";
const RENEW_BEFORE_MS = 24 * 3600 * 1000;

export class Session {
  /** The site's signed token of a known customer; empty for a visitor. */
  identity = "";
  /** The visitor last spoken for. */
  #visitor = "";
  #site;
  #keep;
  #renewIdentity;

  /**
   * @param {object} options
   * @param {string} options.site
   * @param {Keep} options.keep
   * @param {() => Promise<string>} options.renewIdentity  asks the page for a new token; "" where it has none
   */
  constructor({ site, keep, renewIdentity }) {
    this.#site = site;
    this.#keep = keep;
    this.#renewIdentity = renewIdentity;
  }

  /** Whom the identity names, unverified: only to keep one person's unsent text from another. */
  get who() {
    try {
      const claims = this.identity.split(".")[1] ?? "";
      return String(JSON.parse(atob(claims.replaceAll("-", "+").replaceAll("_", "/"))).sub ?? "");
    } catch {
      return this.identity;
    }
  }

  /**
   * The credentials of a hello. Rejects where the server cannot be asked, with a `wait_ms` where it says when it can.
   * @param {boolean} fresh  the last ones were refused
   */
  async credentials(fresh) {
    if (this.identity !== "" && fresh) this.identity = await this.#renewIdentity();
    if (this.identity !== "") return { token: "", identity: this.identity };
    const token = await this.#visit(fresh);
    this.#visitor = visitorOf(token);
    return { token, identity: "" };
  }

  /** What all tabs of this browser have in common that speak for the same as we; "" before a visitor's first token. */
  get group() {
    if (this.identity !== "") return `chatsvc-line:${this.#site}:as:${this.who}`;
    this.#visitor = visitorOf(this.#kept()?.token);
    return this.#visitor && `chatsvc-line:${this.#site}:visitor:${this.#visitor}`;
  }

  /** Whether another tab has forgotten the visitor we speak for, or speaks for another by now. */
  get isReplaced() {
    return this.identity === "" && this.#visitor !== "" && visitorOf(this.#kept()?.token) !== this.#visitor;
  }

  /**
   * Forgets who was here, so that the next on this machine starts with nothing.
   * @param {number} at
   * @returns {boolean} false where the visitor kept has come since
   */
  forget(at) {
    this.identity = "";
    if ((this.#kept()?.since ?? 0) > at) return false;
    this.#visitor = "";
    this.#keep.write(KEY, null);
    return true;
  }

  /** @param {boolean} fresh @returns {Promise<string>} */
  async #visit(fresh) {
    const kept = this.#kept();
    if (kept !== null && !fresh && kept.expires_at - RENEW_BEFORE_MS > Date.now()) return kept.token;
    const response = await fetch("/api/v1/widget/session", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ site: this.#site, token: kept?.token ?? null }),
    });
    if (!response.ok) {
      const wait_ms = 1000 * Number(response.headers.get("Retry-After")) || 0;
      throw Object.assign(new Error(`the session was refused with ${response.status}`), { wait_ms });
    }
    const { token, expires_at } = await response.json();
    // Another tab may have asked at the same time: its visitor, kept first, is everybody's.
    const other = this.#kept();
    if (other !== null && other.token !== kept?.token) return other.token;
    const since = kept !== null && visitorOf(kept.token) === visitorOf(token) ? kept.since : Date.now();
    this.#keep.write(KEY, { token, expires_at, since });
    return token;
  }

  /** @returns {Kept | null} */
  #kept() {
    return /** @type {Kept | null} */ (this.#keep.read(KEY));
  }
}

/** The part of a token that stays when it is renewed. @param {string} [token] */
function visitorOf(token = "") {
  return token.split(":")[0];
}
