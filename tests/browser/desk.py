"""An agent at the dashboard in a browser."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.browser.pages import OpenPage
from tests.support.demo import Demo


def agent(demo: Demo, open_page: OpenPage, name: str, *, at: str = "", **profile: Any) -> Page:
    """Logged in and connected; `at` is the URL of another process of the demo."""
    page = open_page(
        f"{at or demo.url}/dashboard/", **{"viewport": {"width": 1440, "height": 900}, **profile}
    )
    log_in(page, demo, name)
    expect(page.locator(".link-line .dot.on")).to_be_visible()
    return page


def log_in(page: Page, demo: Demo, name: str) -> None:
    """At the page that asks for it, of the dashboard or of the admin."""
    page.locator("input[name=username]").fill(name)
    page.locator("input[name=password]").fill(demo.logins[name])
    page.locator("input[name=password]").press("Enter")


def show(page: Page, conversation: str) -> None:
    """Opens the conversation by its address, as a link or a reload does."""
    page.evaluate("(id) => { location.hash = `#/${id}`; }", conversation)
    expect(page.locator(".thread")).to_be_visible()


def begin_to_write(page: Page, text: str) -> None:
    """Takes the conversation over, which puts the cursor into the answer."""
    page.keyboard.press("t")
    expect(page.locator(".reply textarea")).to_be_focused()
    page.keyboard.type(text)


def state(page: Page) -> Locator:
    return page.locator(".head-state")


def take_after(page: Page, letters: int) -> None:
    """Takes over in the moment in which the coming answer shows so much."""
    page.evaluate(
        """(letters) => new MutationObserver((_, observer) => {
            const shown = [...document.querySelectorAll(".said.streamed .bubble:not([data-working])")].at(-1);
            if ((shown?.textContent.length ?? 0) < letters) return;
            observer.disconnect();
            document.querySelector(".verbs .primary").click();
        }).observe(document.querySelector(".thread"), {childList: true, subtree: true, characterData: true})""",
        letters,
    )
