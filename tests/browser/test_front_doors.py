"""The doors that `make run` prints open with the log-ins it prints, in a real browser."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.desk import log_in
from tests.browser.pages import OpenPage
from tests.support.demo import Demo


def test_an_agent_logs_in_to_the_dashboard(demo: Demo, open_page: OpenPage) -> None:
    page = open_page(f"{demo.url}/dashboard/")
    expect(page).to_have_url(re.compile(r"/login/"))
    log_in(page, demo, "kim")
    expect(page).to_have_url(f"{demo.url}/dashboard/")


def test_the_admin_logs_in_to_the_admin(demo: Demo, open_page: OpenPage) -> None:
    page = open_page(f"{demo.url}/admin/")
    log_in(page, demo, "admin")
    expect(page.get_by_text("Sites").first).to_be_visible()


def test_an_agent_is_not_let_into_the_admin(demo: Demo, open_page: OpenPage) -> None:
    page = open_page(f"{demo.url}/admin/")
    log_in(page, demo, "ana")
    expect(page).to_have_url(re.compile(r"/admin/login/"))
