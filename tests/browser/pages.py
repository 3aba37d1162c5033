"""What the parts of the browser tests share: how a page is opened, and how long anything may take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from playwright.sync_api import Page

WAIT_MS = 30_000
# No sandbox, because CI runs as root; no calls home, because tests have no network.
FLAGS = ["--no-sandbox", "--disable-quic", "--disable-background-networking", "--disable-component-update"]

OpenPage = Callable[..., Page]


def until(page: Page, true: Callable[[], bool], what: str) -> None:
    """Lets the page run until the condition holds. Raises `AssertionError` after 30 s."""
    late = time.monotonic() + WAIT_MS / 1000
    while not true():
        assert time.monotonic() < late, f"in vain waited for {what}"
        page.wait_for_timeout(20)


@contextmanager
def halted(page: Page) -> Iterator[None]:
    """Meanwhile nothing runs in the page, as while a long task does, or in one that is frozen."""
    debugger = page.context.new_cdp_session(page)
    debugger.send("Debugger.enable")
    debugger.send("Debugger.pause")
    try:
        yield
    finally:
        debugger.detach()
