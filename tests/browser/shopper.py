"""A browser on the demo shop Lantern: its log-in switch, the widget, and every frame its sockets were sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Frame, Page, WebSocket, expect

from chatsvc.environment import BASE_DIR
from tests.browser.pages import halted, until
from tests.support.client import Frame as WireFrame
from tests.support.client import decode

CUSTOMERS = {"mia": "Mia Chen", "leo": "Leo Martin"}

_CATALOGS = BASE_DIR / "static" / "js" / "widget" / "locale"


@dataclass(slots=True)
class Socket:
    """One socket of the widget. `heard` holds the server's frames in order, `said` the widget's."""

    heard: list[WireFrame] = field(default_factory=list)
    said: list[WireFrame] = field(default_factory=list)
    closed: bool = False

    def count(self, kind: str) -> int:
        return sum(frame["type"] == kind for frame in self.heard)


class Shopper:
    """One page of the shop. A visitor until `become`."""

    def __init__(self, page: Page, language: str = "en") -> None:
        self.page = page
        self.language = language
        self.words: dict[str, Any] = catalog(language)
        self.sockets: list[Socket] = []
        self.launcher = page.locator("chatsvc-widget .launcher")
        self.chat = page.frame_locator("chatsvc-widget iframe")
        self.box = self.chat.locator("chat-composer textarea")
        self.send_button = self.chat.locator("chat-composer .send")
        self.human = self.chat.locator("chat-composer .human")
        self.rows = self.chat.locator(".rows > .row:not(.typing)")
        self.answers = self.chat.locator(".rows > .row.assistant")
        self.system_lines = self.chat.locator(".rows > .system")
        self.scroller = self.chat.locator(".scroller")
        self.notice = self.chat.locator(".notice")
        page.on("websocket", self._listen)

    def open(self) -> Shopper:
        self.show()
        self.welcomed()
        return self

    def show(self) -> None:
        """Opens the chat where it is not open from the page before."""
        if self.launcher.get_attribute("aria-expanded") == "false":
            self.launcher.click()

    def follow(self) -> Shopper:
        """Opens the chat where another tab has the line."""
        self.show()
        self.connected()
        return self

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """The browser freezes the page and says so, as it does before a laptop sleeps.

        Chromium freezes no page that is watched by Playwright: the events are ours, and a debugger stops the page.
        """
        self._happens("freeze")
        with halted(self.page):
            yield
        self._happens("resume")

    def _happens(self, name: str) -> None:
        self.frame.evaluate("(name) => void document.dispatchEvent(new Event(name))", name)

    def connected(self) -> None:
        """Waits until the chat has a line, its own or another tab's, and was shown how things stand."""
        expect(self.box).to_be_visible()
        script = "() => document.querySelector('chat-app').chat.connection"
        until(self.page, lambda: self.frame.evaluate(script) == "open", "a line")
        expect(self.notice).to_be_hidden()

    def welcomed(self, times: int = 1) -> None:
        """Waits until the newest socket has been welcomed: what is shown then is the server's word."""
        until(
            self.page, lambda: bool(self.sockets) and self.sockets[-1].count("welcome") >= times, "a welcome"
        )
        expect(self.box).to_be_visible()

    def become(self, customer: str) -> Shopper:
        """Logs in to the shop by its switch; "" logs out."""
        known = len(self.sockets)
        self.page.locator(f"input[name=customer][value='{customer}']").check(force=True)
        if known:
            until(self.page, lambda: len(self.sockets) > known, "a socket as somebody else")
            self.welcomed()
        return self

    def ask(self, text: str) -> None:
        self.box.fill(text)
        self.box.press("Enter")

    def stop_after(self, letters: int) -> None:
        """Presses stop in the moment in which the coming answer shows so much."""
        self.frame.evaluate(
            """(letters) => new MutationObserver((_, observer) => {
                const shown = document.querySelector(".rows > .row.assistant:last-child:not(.working) .bubble");
                if ((shown?.textContent.length ?? 0) < letters) return;
                observer.disconnect();
                document.querySelector(".send.stop").click();
            }).observe(document.querySelector(".rows"), {childList: true, subtree: true, characterData: true})""",
            letters,
        )

    def choose(self, word: str) -> None:
        """An item of the menu by its key in the catalog."""
        self.chat.get_by_role("button", name=self.words["menu"], exact=True).click()
        self.chat.get_by_role("menuitem", name=self.words[word]).click()

    def start_anew(self) -> Shopper:
        """A conversation of its own for a customer who may have others."""
        welcomes = self.sockets[-1].count("welcome")
        self.choose("new_conversation")
        self.welcomed(welcomes + 1)
        expect(self.rows).to_have_count(0)
        return self

    def second_tab(self, before: Callable[[Page], None] | None = None) -> Shopper:
        """The same address in another tab of the same browser; `before` is given it before it goes anywhere."""
        page = self.page.context.new_page()
        if before is not None:
            before(page)
        other = Shopper(page, self.language)
        page.goto(self.page.url)
        return other

    def answered(self, count: int = 1) -> str:
        """The text of the newest answer once there are so many and it stands whole."""
        expect(self.answers).to_have_count(count)
        expect(self.answers.last.locator(".meta time")).to_be_visible()
        return self.answers.last.locator(".bubble").inner_text()

    def said(self) -> list[tuple[str, str]]:
        """Author and text of every message on the screen, from the top."""
        read: list[list[str]] = self.frame.evaluate(
            """() => [...document.querySelectorAll(".rows > .row:not(.typing)")].map((row) => [
                ["mine", "assistant", "agent"].find((kind) => row.classList.contains(kind)),
                row.querySelector(".bubble").innerText,
            ])"""
        )
        return [(author, text) for author, text in read]

    @property
    def open_sockets(self) -> int:
        return sum(not socket.closed for socket in self.sockets)

    @property
    def conversation(self) -> str:
        """The id of the conversation shown."""
        welcomes = [frame for frame in self.sockets[-1].heard if frame["type"] == "welcome"]
        return str(welcomes[-1]["conversation"])

    def watch_growth(self) -> None:
        """From now on notes every text that the newest answer shows."""
        self.frame.evaluate(
            """() => {
                window.grown = [];
                const note = () => {
                  const bubble = [...document.querySelectorAll(".rows > .row.assistant:not(.working) .bubble")].at(-1);
                  const text = bubble?.textContent ?? "";
                  if (text !== "" && text !== window.grown.at(-1)) window.grown.push(text);
                };
                new MutationObserver(note).observe(document.querySelector(".rows"),
                  {childList: true, subtree: true, characterData: true, attributes: true});
            }"""
        )

    def grown(self) -> list[str]:
        read: list[str] = self.frame.evaluate("() => window.grown")
        return read

    @property
    def frame(self) -> Frame:
        """The widget's document."""
        return next(frame for frame in self.page.frames if "/widget/" in frame.url)

    def stored(self, key: str) -> Any:
        """What the widget keeps under this key."""
        script = """(key) => JSON.parse(Object.entries(localStorage).find(([name]) => name.endsWith(`:${key}`))?.[1]
            ?? "null")"""
        return self.frame.evaluate(script, key)

    def _listen(self, socket: WebSocket) -> None:
        if not socket.url.endswith("/ws/customer"):
            return
        journal = Socket()
        self.sockets.append(journal)
        socket.on("framereceived", lambda payload: journal.heard.append(decode(payload)))
        socket.on("framesent", lambda payload: journal.said.append(json.loads(payload)))
        socket.on("close", lambda _: setattr(journal, "closed", True))


def catalog(language: str) -> dict[str, Any]:
    """The widget's words."""
    read: dict[str, Any] = json.loads((_CATALOGS / f"{language}.json").read_text(encoding="utf-8"))
    return read
