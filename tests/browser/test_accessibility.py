"""axe finds nothing on the pages that customers and agents work in, light and dark."""

from __future__ import annotations

import subprocess
from functools import cache
from typing import Any

import pytest
from playwright.sync_api import Frame, Page, expect

from chatsvc.environment import BASE_DIR
from tests.browser.desk import agent, show
from tests.browser.pages import OpenPage
from tests.browser.shopper import Shopper
from tests.support.demo import Demo

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

light_and_dark = pytest.mark.parametrize("scheme", ["light", "dark"])


@light_and_dark
def test_the_widget(demo: Demo, open_page: OpenPage, scheme: str) -> None:
    page = open_page(f"{demo.url}/demo/?lang=en", color_scheme=scheme, reduced_motion="reduce")
    visitor = Shopper(page).open()
    assert faults(visitor.frame) == []
    visitor.ask("Can I return worn boots?")
    visitor.answered()
    visitor.chat.get_by_role("button", name=visitor.words["menu"], exact=True).click()
    assert faults(visitor.frame) == []
    page.keyboard.press("Escape")
    visitor.human.click()
    visitor.chat.locator("chat-waiting summary").click()
    assert faults(visitor.frame) == []
    visitor.choose("earlier_conversations")
    expect(visitor.chat.locator("chat-earlier .entry")).to_have_count(1)
    assert faults(visitor.frame) == []


@light_and_dark
def test_the_shop(demo: Demo, open_page: OpenPage, scheme: str) -> None:
    page = open_page(f"{demo.url}/demo/?lang=en", color_scheme=scheme, reduced_motion="reduce")
    expect(page.locator("chatsvc-widget .launcher")).to_be_visible()
    assert faults(page) == []


@light_and_dark
def test_the_dashboard(demo: Demo, open_page: OpenPage, scheme: str) -> None:
    look = {"color_scheme": scheme, "reduced_motion": "reduce"}
    login = open_page(f"{demo.url}/dashboard/", **look)
    assert faults(login) == []
    visitor = Shopper(open_page(f"{demo.url}/demo/?lang=en")).become("mia").open().start_anew()
    visitor.ask("Can I return worn boots?")
    visitor.answered()
    visitor.human.click()
    kim = agent(demo, open_page, "kim", **look)
    assert faults(kim) == []
    show(kim, visitor.conversation)
    expect(kim.locator(".order")).to_have_count(3)
    kim.keyboard.press("t")
    expect(kim.locator(".reply textarea")).to_be_focused()
    assert faults(kim) == []
    kim.get_by_role("button", name="Settings").click()
    assert faults(kim) == []


def faults(page: Page | Frame) -> list[tuple[str, list[Any]]]:
    """The rules that the document breaks, and where."""
    page.evaluate(_axe())
    found: list[dict[str, Any]] = page.evaluate(
        "async (rules) => (await axe.run({exclude: ['iframe']}, {runOnly: rules})).violations", RULES
    )
    return [(rule["id"], [node["target"] for node in rule["nodes"]]) for rule in found]


@cache
def _axe() -> str:
    path = BASE_DIR / "node_modules" / "axe-core" / "axe.min.js"
    if not path.exists():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=BASE_DIR, check=True)
    return path.read_text(encoding="utf-8")
