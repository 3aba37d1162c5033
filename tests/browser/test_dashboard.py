"""The agents' dashboard in a browser, beside a real service."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.browser.customer import SocketCustomer, visiting
from tests.support.demo import Demo

OpenPage = Callable[..., Page]


def agent(demo: Demo, open_page: OpenPage, name: str, **profile: Any) -> Page:
    page = open_page(f"{demo.url}/dashboard/", **{"viewport": {"width": 1440, "height": 900}, **profile})
    page.locator("#id_username").fill(name)
    page.locator("#id_password").fill(demo.logins[name])
    page.locator("main button[type=submit]").click()
    expect(page.locator(".link-line .dot.on")).to_be_visible()
    return page


def show(page: Page, customer: SocketCustomer) -> None:
    """Opens the customer's conversation by its address, as a link or a reload does."""
    page.evaluate("(id) => { location.hash = `#/${id}`; }", customer.conversation)
    expect(page.locator(".said").first).to_be_visible()


def state(page: Page) -> Locator:
    return page.locator(".head-state")


def test_a_request_for_a_person_is_announced_answered_and_resolved(demo: Demo, open_page: OpenPage) -> None:
    kim = agent(demo, open_page, "kim")
    with visiting(demo) as customer:
        customer.say("Is anybody there?")
        customer.ask_for_a_person()
        expect(kim.locator("#announcer")).to_have_text(re.compile("is waiting for a person"))
        expect(kim).to_have_title(re.compile(r"^\(\d+\) Inbox"))
        show(kim, customer)
        kim.keyboard.press("t")
        expect(state(kim)).to_contain_text("You answer")
        expect(kim.locator(".reply textarea")).to_be_focused()
        kim.keyboard.type("Yes, I am here.")
        kim.keyboard.press("Enter")
        customer.hears("Yes, I am here.")
        expect(kim.locator(".said.ours").last).to_contain_text("Yes, I am here.")
        kim.keyboard.press("Escape")
        kim.keyboard.press("e")
        expect(state(kim)).to_contain_text("Resolved")
        kim.get_by_role("button", name="Undo").click()
        expect(state(kim)).to_contain_text("You answer")
        kim.keyboard.press("b")
        expect(state(kim)).to_contain_text("Assistant answers")


def test_of_two_agents_who_take_at_once_one_is_told_who_was_first(demo: Demo, open_page: OpenPage) -> None:
    kim, ana = agent(demo, open_page, "kim"), agent(demo, open_page, "ana")
    with visiting(demo) as customer:
        customer.say("Hello")
        customer.ask_for_a_person()
        for page in (kim, ana):
            show(page, customer)
            expect(state(page)).to_contain_text("Waiting for a person")
        for page in (kim, ana):
            page.keyboard.press("t")
        expect(state(kim)).to_contain_text(re.compile("answers?$|answer"))
        owner, other = (kim, ana) if "You answer" in state(kim).inner_text() else (ana, kim)
        expect(state(owner)).to_contain_text("You answer")
        expect(other.locator("toast-stack")).to_contain_text("already took it")
        expect(other.locator(".reply textarea")).to_be_hidden()
        expect(other.locator(".reply-closed")).to_contain_text("answers this conversation")


def test_letters_typed_into_an_answer_are_only_letters(demo: Demo, open_page: OpenPage) -> None:
    kim = agent(demo, open_page, "kim")
    with visiting(demo) as customer:
        customer.say("Hello")
        show(kim, customer)
        kim.keyboard.press("t")
        expect(kim.locator(".reply textarea")).to_be_focused()
        kim.keyboard.type("better? e/b")
        expect(kim.locator(".reply textarea")).to_have_value("better? e/b")
        expect(state(kim)).to_contain_text("You answer")
        kim.reload()
        expect(kim.locator(".reply textarea")).to_have_value("better? e/b")


def test_markup_of_a_customer_is_shown_as_text(demo: Demo, open_page: OpenPage) -> None:
    kim = agent(demo, open_page, "kim")
    markup = "<img src=x onerror=alert(1)><b>bold</b> [a](javascript:alert(1))"
    with visiting(demo) as customer:
        customer.say(markup)
        show(kim, customer)
        expect(kim.locator(".said:not(.ours) .bubble").first).to_have_text(markup)
        assert kim.locator(".bubble img, .bubble b, .bubble a[href^=javascript]").count() == 0


def test_the_dashboard_speaks_chinese_and_keeps_the_choice(demo: Demo, open_page: OpenPage) -> None:
    ana = agent(demo, open_page, "ana")
    ana.get_by_role("button", name="Settings").click()
    ana.get_by_label("Language").select_option("zh-hans")
    expect(ana.locator(".filters")).to_contain_text("等待中")
    ana.reload()
    expect(ana.locator("html")).to_have_attribute("lang", "zh-Hans")


def test_an_ended_session_asks_for_a_log_in_and_keeps_the_draft(demo: Demo, open_page: OpenPage) -> None:
    kim = agent(demo, open_page, "kim")
    with visiting(demo) as customer:
        customer.say("Hello")
        show(kim, customer)
        kim.keyboard.press("t")
        expect(kim.locator(".reply textarea")).to_be_focused()
        kim.keyboard.type("half a sentence")
        kim.context.clear_cookies()
        kim.reload()
        expect(kim.locator("#id_username")).to_be_visible()
        kim.locator("#id_username").fill("kim")
        kim.locator("#id_password").fill(demo.logins["kim"])
        kim.locator("main button[type=submit]").click()
        show(kim, customer)
        expect(kim.locator(".reply textarea")).to_have_value("half a sentence")
