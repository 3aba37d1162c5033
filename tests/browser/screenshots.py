"""Makes the README's pictures anew, on a fresh demo: `python -m tests.browser.screenshots`."""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

import tests.environment  # noqa: F401 - the demo must not read a developer's settings
from chatsvc.environment import BASE_DIR
from tests.browser.chromium import ensure_chromium, find_chromium
from tests.browser.desk import agent, begin_to_write, show
from tests.browser.pages import FLAGS, WAIT_MS
from tests.browser.shopper import Shopper
from tests.services import private_folder
from tests.support.demo import Demo
from tests.support.processes import ended_after

IMAGES = BASE_DIR / "docs" / "images"
SIZE = {"width": 1280, "height": 800}
LIMIT_BYTES = 250_000


class Studio:
    """A browser in which every page is lit the same way."""

    def __init__(self, demo: Demo, browser: Browser) -> None:
        self.demo = demo
        self._browser = browser

    def open_page(self, url: str, **profile: Any) -> Page:
        look = {"viewport": SIZE, "color_scheme": "light", "locale": "en-GB", "timezone_id": "UTC", **profile}
        context = self._browser.new_context(**look)
        context.set_default_timeout(WAIT_MS)
        page = context.new_page()
        page.goto(url)
        return page

    def shopper(self, customer: str = "", language: str = "en") -> Shopper:
        shopper = Shopper(self.open_page(f"{self.demo.url}/demo/?lang={language}"), language)
        return shopper.become(customer).open()


def widget(studio: Studio) -> None:
    """The shop with a conversation in which Mia learns where her order is and what the returns policy says."""
    mia = studio.shopper("mia")
    for number, question in enumerate(("Where is my order 1042?", "Can I return worn boots?"), start=1):
        mia.ask(question)
        mia.answered(number)
    shoot(mia.page, "widget")


def dashboard(studio: Studio) -> None:
    """An agent's desk: several conversations, one taken over and answered."""
    leo = studio.shopper("leo")
    leo.ask("When does my desk lamp arrive?")
    leo.answered()
    chinese = studio.shopper(language="zh")
    chinese.ask("穿过的靴子可以退吗？")
    chinese.answered()
    waiting = studio.shopper()
    waiting.ask("Can you engrave a lantern?")
    waiting.answered()
    waiting.human.click()
    expect(waiting.system_lines).to_have_count(1)
    mia = studio.shopper("mia")
    mia.ask("I'd like to talk to a person about my refund")
    mia.answered(3)
    kim = agent(studio.demo, studio.open_page, "kim", viewport=SIZE)
    show(kim, mia.conversation)
    begin_to_write(kim, "Hello Mia, Kim here. Your refund left us yesterday; banks need up to five days.")
    kim.keyboard.press("Enter")
    expect(mia.rows.last).to_contain_text("Kim here")
    mia.ask("That explains it. Thank you, Kim!")
    expect(kim.locator(".said").last).to_contain_text("That explains it")
    shoot(kim, "dashboard")


def shoot(page: Page, name: str) -> None:
    """Raises `AssertionError` when the picture is too heavy for a README."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    page.evaluate("() => document.fonts.ready")
    page.mouse.move(0, 0)
    picture = pressed(page.screenshot(animations="disabled", caret="hide"))
    assert len(picture) < LIMIT_BYTES, f"{name}.png has {len(picture):,} bytes"
    (IMAGES / f"{name}.png").write_bytes(picture)
    sys.stdout.write(f"docs/images/{name}.png: {len(picture):,} bytes\n")


def pressed(png: bytes) -> bytes:
    """The same picture as small as deflate makes it."""
    chunks = list(_chunks(png))
    pixels = zlib.compress(zlib.decompress(b"".join(data for kind, data in chunks if kind == b"IDAT")), 9)
    kept = [(kind, data) for kind, data in chunks if kind in (b"IHDR", b"PLTE", b"tRNS")]
    return png[:8] + b"".join(_chunk(*part) for part in [*kept, (b"IDAT", pixels), (b"IEND", b"")])


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 8
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        yield kind, png[at + 8 : at + 8 + length]
        at += length + 12


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def main() -> None:
    ensure_chromium()
    program = find_chromium()
    with private_folder("chatsvc-demo-") as folder, sync_playwright() as playwright:
        demo = Demo(Path(folder))
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        with ended_after(demo):
            studio = Studio(demo, browser)
            widget(studio)
            dashboard(studio)
            browser.close()
            demo.stop()


if __name__ == "__main__":
    main()
