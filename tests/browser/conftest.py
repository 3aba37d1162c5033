"""Fixtures of the browser tests, which are plain functions on Playwright's synchronous API.

`demo`       the whole of `make run` with the demo shop, shared by all tests of a run.
`second_web` another web process beside it: a second front door to the same conversations.
`story`      a second site of the demo, whose answers a test writes.
`open_page`  a new browser profile with one page: `open_page(demo.url + "/demo/", locale="zh-CN", viewport=…)`;
             `before` is given the page before it goes anywhere. At the end of a test no page may have thrown an
             error; a failing test leaves pictures in var/browser/.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from pytest_django import DjangoDbBlocker

from chatsvc.environment import BASE_DIR
from tests.browser.chromium import NoChromium, find_chromium
from tests.browser.pages import FLAGS, WAIT_MS, OpenPage
from tests.browser.story import Story, storybook
from tests.services import private_folder
from tests.support.database import Databases
from tests.support.demo import Demo
from tests.support.processes import Web, ended_after

PICTURES = BASE_DIR / "var" / "browser"


@pytest.fixture(scope="session")
def demo(databases: Databases) -> Iterator[Demo]:
    with private_folder("chatsvc-demo-") as folder:
        (folder / "static").symlink_to(databases.static)
        if not databases.is_postgres:  # else it makes its own
            databases.copy_to(folder / "chatsvc.sqlite3")
        running = Demo(folder)
        with ended_after(running):
            yield running
            running.stop()


@pytest.fixture(scope="session")
def story(demo: Demo, django_db_blocker: DjangoDbBlocker) -> Iterator[Story]:
    with django_db_blocker.unblock(), storybook(demo) as site:
        yield site


@pytest.fixture(scope="session")
def second_web(demo: Demo) -> Iterator[Web]:
    process = demo.second_web()
    with ended_after(process):
        yield process


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        raise NoChromium("The browser tests need Chromium; `make test` installs it.")
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Browser, request: pytest.FixtureRequest) -> Iterator[OpenPage]:
    contexts: list[BrowserContext] = []
    errors: list[str] = []

    def open_one(url: str, *, before: Callable[[Page], None] | None = None, **profile: Any) -> Page:
        context = chromium.new_context(**profile)
        contexts.append(context)
        context.set_default_timeout(WAIT_MS)
        context.on("weberror", lambda error: errors.append(str(error.error)))
        page = context.new_page()
        if before is not None:
            before(page)
        page.goto(url)
        return page

    yield open_one
    if request.node.stash.get(_failed, False):
        _picture(request.node.name, [page for context in contexts for page in context.pages])
    for context in contexts:
        context.close()
    assert errors == []


_failed = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" and report.failed:
        item.stash[_failed] = True
    return report


def _picture(name: str, pages: list[Page]) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    for number, page in enumerate(pages, start=1):
        if not page.is_closed():
            page.screenshot(path=PICTURES / f"{name}-{number}.png")
