// @ts-check
// The snippet's script: a launcher and a frame of ours on someone else's page. One global, nothing else leaks.
(() => {
  const script = /** @type {HTMLScriptElement | null} */ (document.currentScript);
  const site = script?.dataset.site ?? "";
  const page = /** @type {Window & {chatsvc?: object}} */ (window);
  if (!script || page.chatsvc) return;
  if (!site) return complain("The script tag has no data-site. Copy the snippet again from the site's page in the admin.");

  const OPEN = `chatsvc:open:${site}`;
  const origin = new URL(script.src).origin;
  const locale = (script.dataset.locale || document.documentElement.lang || navigator.language || "en").toLowerCase();
  const words = locale.startsWith("zh")
    ? { open: "打开在线客服", close: "关闭聊天", unread: "条未读消息", frame: "在线客服" }
    : { open: "Open chat", close: "Close chat", unread: "unread", frame: "Chat" };

  const STYLE = `
    :host { all: initial }
    .launcher {
      position: fixed; inset-block-end: 20px; inset-inline-end: 20px; z-index: 2147483000; box-sizing: border-box;
      display: grid; place-items: center; inline-size: 56px; block-size: 56px; padding: 0; border: 0; border-radius: 50%;
      background: var(--accent); color: #fff; cursor: pointer;
      box-shadow: 0 1px 3px rgb(16 20 30 / 16%), 0 8px 24px rgb(16 20 30 / 20%); transition: transform 120ms ease-out;
    }
    .launcher:hover { transform: scale(1.04) }
    .launcher:focus-visible { outline: 3px solid var(--accent); outline-offset: 3px }
    .launcher svg { grid-area: 1 / 1; inline-size: 26px; block-size: 26px }
    .launcher[aria-expanded="true"] .chat, .launcher[aria-expanded="false"] .down { display: none }
    .badge {
      position: absolute; inset-block-start: -2px; inset-inline-end: -2px; min-inline-size: 20px; block-size: 20px;
      padding: 0 5px; box-sizing: border-box; border-radius: 10px; background: #bf2d2d; color: #fff;
      font: 600 12px/20px system-ui, sans-serif; text-align: center; box-shadow: 0 0 0 2px #fff;
    }
    .badge:empty { display: none }
    /* Three dots, where the chat does not soon stand before them. */
    iframe {
      position: fixed; inset-block-end: 92px; inset-inline-end: 20px; z-index: 2147483000; inline-size: 400px;
      block-size: min(640px, 100dvh - 112px); border: 0; border-radius: 12px; color-scheme: light dark;
      --dot: radial-gradient(circle, GrayText 3px, #0000 4px) no-repeat;
      background: var(--dot) calc(50% - 14px) / 8px 8px, var(--dot) 50% / 8px 8px, var(--dot) calc(50% + 14px) / 8px 8px, Canvas;
      box-shadow: 0 0 0 1px rgb(16 20 30 / 8%), 0 4px 12px rgb(16 20 30 / 10%), 0 16px 48px rgb(16 20 30 / 18%);
      transform-origin: 100% 100%; animation: wait 1ms 300ms backwards;
    }
    iframe.shown { animation: enter 180ms cubic-bezier(.2, 0, 0, 1), wait 1ms 300ms backwards }
    @keyframes wait { from { background-size: 0 0 } }
    iframe[hidden] { display: none }
    @keyframes enter { from { opacity: 0; transform: translateY(12px) scale(.98) } }
    @media (prefers-color-scheme: dark) {
      iframe { box-shadow: 0 0 0 1px rgb(255 255 255 / 14%), 0 4px 12px rgb(0 0 0 / 40%), 0 16px 48px rgb(0 0 0 / 50%) }
    }
    @media (max-width: 479px) {
      iframe { inset: 0; inline-size: 100%; block-size: 100dvh; border-radius: 0; box-shadow: none }
      .launcher[aria-expanded="true"] { display: none }
    }
    @media (prefers-reduced-motion: reduce) { .launcher { transition: none } iframe.shown { animation: none } }
    @media print { .launcher, iframe { display: none } }
  `;

  /** @type {HTMLButtonElement | undefined} */
  let launcher;
  /** @type {HTMLIFrameElement | undefined} */
  let frame;
  /** @type {ShadowRoot | undefined} */
  let root;
  /** @type {MessagePort | undefined} */
  let port;
  let opened = false;
  let wanted = false;
  /** When whoever was here left, until our frame knows: also where nobody has opened the chat on this page. */
  let left = 0;
  /** Open without having been asked for: it may not take the focus. */
  let quiet = false;
  /** @type {string | (() => string | Promise<string>)} */
  let identity = script.dataset.identity ?? "";
  /** @type {Promise<void>} */
  let settled = Promise.resolve();

  const api = Object.freeze({
    open: () => { wanted = true; if (root) show(); },
    close: () => hide(),
    /** @param {string | (() => string | Promise<string>)} given  a signed token, or a function that fetches one whenever it is needed */
    identify: (given) => { identity = given; settled = introduce(); },
    logout: () => { identity = ""; left = Date.now(); leave(); load(); },
  });
  Object.defineProperty(page, "chatsvc", { value: api, configurable: true });
  void start();

  async function start() {
    const hint = Object.assign(document.createElement("link"), { rel: "preconnect", href: origin });
    document.head.append(hint);
    const config = await configuration();
    if (!config) return;
    if (document.readyState === "loading") await new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }));
    build(config);
    if (left) load();
    document.dispatchEvent(new CustomEvent("chatsvc:ready"));
    if (wanted) show();
    else if (stayed()) show(true);
  }

  /** Whether the chat was open on the page that this tab showed before. Not where it would cover the new one. */
  function stayed() {
    try {
      return sessionStorage.getItem(OPEN) !== null && !matchMedia("(max-width: 479px)").matches;
    } catch {
      return false;
    }
  }

  /** @param {boolean} open */
  function stay(open) {
    try {
      if (open) sessionStorage.setItem(OPEN, "1");
      else sessionStorage.removeItem(OPEN);
    } catch {
      // Storage is denied: the next page begins closed.
    }
  }

  async function configuration() {
    try {
      const answer = await fetch(`${origin}/api/v1/widget/config?site=${encodeURIComponent(site)}`, { credentials: "omit" });
      if (answer.status === 404) return complain(`There is no site "${site}". Check data-site in the snippet.`);
      if (!answer.ok) return complain(`The service answered ${answer.status}. The chat is not shown.`);
      const config = await answer.json();
      if (config.allowed) return config;
      return complain(`Pages of ${location.origin} may not show the chat of "${config.name ?? site}". Add this origin to the site's allowed origins in the admin.`);
    } catch {
      return complain(`${origin} cannot be reached. The chat is not shown.`);
    }
  }

  /** @param {{accent: string, name: string}} config */
  function build({ accent, name }) {
    const host = document.createElement("chatsvc-widget");
    // The page's own rules outrank :host, so the one thing it could break is fixed here.
    host.style.setProperty("all", "initial", "important");
    host.style.setProperty("--accent", accent);
    root = host.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    launcher = document.createElement("button");
    launcher.type = "button";
    launcher.className = "launcher";
    launcher.append(
      drawing("chat", "M3 9.5C3 6 6 3.5 10 3.5s7 2.5 7 6-3 6-7 6c-.9 0-1.7-.1-2.5-.4L4 16.5l.9-3C3.7 12.5 3 11.1 3 9.5Z"),
      drawing("down", "M5.5 8l4.5 4.5L14.5 8"), Object.assign(document.createElement("span"), { className: "badge" }),
    );
    launcher.addEventListener("click", () => (opened ? hide() : show()));
    for (const hint of ["pointerenter", "focus", "touchstart"]) launcher.addEventListener(hint, () => load(), { once: true, passive: true });
    launcher.addEventListener("keydown", (event) => { if (event.key === "Escape" && opened) hide(); });
    root.append(launcher);
    label(0);
    launcher.title = `${name}: ${words.open}`;
    document.body.append(host);
  }

  /** @param {string} name @param {string} path */
  function drawing(name, path) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const [key, value] of Object.entries({
      class: name, viewBox: "0 0 20 20", fill: "none", stroke: "currentColor", "stroke-width": "1.5", "stroke-linecap": "round",
      "stroke-linejoin": "round", "aria-hidden": "true",
    })) svg.setAttribute(key, value);
    const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    line.setAttribute("d", path);
    svg.append(line);
    return svg;
  }

  function load() {
    if (frame || !root) return;
    frame = document.createElement("iframe");
    frame.hidden = true;
    frame.title = words.frame;
    frame.allow = "autoplay; clipboard-write";
    frame.src = `${origin}/widget/${encodeURIComponent(site)}/?lang=${encodeURIComponent(locale)}`;
    frame.addEventListener("load", shake);
    root.append(frame);
  }

  /** Hands the frame one end of a channel; nobody but a document of our origin can receive it. */
  function shake() {
    const channel = new MessageChannel();
    channel.port1.onmessage = ({ data }) => receive(data);
    frame?.contentWindow?.postMessage({ type: "chatsvc:port" }, origin, [channel.port2]);
    port = channel.port1;
  }

  /** @param {{type: string, count?: number}} message */
  async function receive(message) {
    if (message.type === "hide") hide();
    if (message.type === "unread") label(message.count ?? 0);
    if (message.type === "identity?") port?.postMessage({ type: "identity", identity: await token() });
    if (message.type === "ready") {
      leave();
      if (identity) settled = introduce();
      if (opened) begin();
    }
  }

  function leave() {
    if (!left || !port) return;
    port.postMessage({ type: "logout", at: left });
    left = 0;
  }

  async function introduce() {
    const asked = identity;
    const given = await token();
    if (given && asked === identity) port?.postMessage({ type: "identify", identity: given });
  }

  async function token() {
    try {
      return typeof identity === "function" ? await identity() : identity;
    } catch {
      complain("The function given to identify() failed. The customer stays a visitor.");
      return "";
    }
  }

  /** Says that the widget is open once the page has said who its customer is. */
  function begin() {
    void settled.then(() => { if (opened) port?.postMessage({ type: "open", quiet }); });
  }

  /** @param {boolean} [again]  as it was on the page before: without motion, and the focus stays where it is */
  function show(again = false) {
    load();
    if (!frame || opened) return;
    opened = true;
    quiet = again;
    stay(true);
    frame.hidden = false;
    frame.classList.toggle("shown", !again);
    if (!again) frame.focus();
    label(0);
    if (port) begin();
  }

  function hide() {
    wanted = false;
    stay(false);
    if (!frame || !opened) return;
    opened = false;
    frame.hidden = true;
    port?.postMessage({ type: "closed" });
    label(0);
    launcher?.focus();
  }

  /** @param {number} unread */
  function label(unread) {
    if (!launcher) return;
    const count = opened || unread === 0 ? "" : unread > 9 ? "9+" : String(unread);
    const badge = launcher.querySelector(".badge");
    if (badge) badge.textContent = count;
    launcher.setAttribute("aria-expanded", String(opened));
    launcher.setAttribute("aria-label", opened ? words.close : count ? `${words.open} (${count} ${words.unread})` : words.open);
  }

  /** @param {string} sentence */
  function complain(sentence) {
    console.warn(`[chatsvc] ${sentence}`);
  }
})();
