"""The agents' dashboard in a browser, beside a real service."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.customer import visiting
from tests.browser.desk import agent, begin_to_write, log_in, show, state
from tests.browser.pages import OpenPage, until
from tests.browser.shopper import Shopper
from tests.support.demo import Demo


def test_a_request_for_a_person_is_announced_answered_and_resolved(demo: Demo, open_page: OpenPage) -> None:
    kim = agent(demo, open_page, "kim")
    with visiting(demo) as customer:
        customer.say("Is anybody there?")
        customer.ask_for_a_person()
        expect(kim.locator("#announcer")).to_have_text(re.compile("is waiting for a person"))
        expect(kim).to_have_title(re.compile(r"^\(\d+\) Inbox"))
        show(kim, customer.conversation)
        begin_to_write(kim, "Yes, I am here.")
        expect(state(kim)).to_contain_text("You answer")
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
        expect(kim.locator("toast-stack")).to_contain_text("Handed back")
        kim.keyboard.press("t")
        expect(state(kim)).to_contain_text("You answer")
        # It is handed back no more, and there is nothing to undo.
        expect(kim.locator("toast-stack > *")).to_have_count(0)


def test_letters_typed_into_an_answer_are_only_letters(demo: Demo, open_page: OpenPage) -> None:
    kim = agent(demo, open_page, "kim")
    with visiting(demo) as customer:
        customer.say("Hello")
        show(kim, customer.conversation)
        begin_to_write(kim, "better? e/b")
        expect(kim.locator(".reply textarea")).to_have_value("better? e/b")
        expect(state(kim)).to_contain_text("You answer")
        kim.reload()
        expect(kim.locator(".reply textarea")).to_have_value("better? e/b")


def test_markup_of_a_customer_is_shown_as_text(demo: Demo, open_page: OpenPage) -> None:
    kim = agent(demo, open_page, "kim")
    markup = "<img src=x onerror=alert(1)><b>bold</b> [a](javascript:alert(1))"
    with visiting(demo) as customer:
        customer.say(markup)
        show(kim, customer.conversation)
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
        show(kim, customer.conversation)
        begin_to_write(kim, "half a sentence")
        kim.context.clear_cookies()
        kim.reload()
        log_in(kim, demo, "kim")
        show(kim, customer.conversation)
        expect(kim.locator(".reply textarea")).to_have_value("half a sentence")


def test_the_inbox_is_worked_by_keys_alone(demo: Demo, open_page: OpenPage) -> None:
    kim = agent(demo, open_page, "kim")
    keys, rows = kim.keyboard, kim.locator("inbox-list button.row")
    with visiting(demo) as one, visiting(demo) as two:
        for visitor, which in ((one, "first"), (two, "second")):
            visitor.ask_for_a_person()  # else the assistant's answer becomes the last line, which is searched
            visitor.say(f"The {which} of two lamps")
        expect(rows.filter(has_text="of two lamps")).to_have_count(2)
        keys.press("/")
        keys.type("of two lamps")
        expect(rows).to_have_count(2)
        keys.press("ArrowDown")
        expect(rows.first).to_be_focused()
        keys.press("ArrowDown")
        expect(rows.nth(1)).to_be_focused()
        keys.press("k")
        expect(rows.first).to_be_focused()
        keys.press("Enter")
        expect(kim.locator(".said").first).to_contain_text("of two lamps")
        keys.press("t")
        expect(kim.locator(".reply textarea")).to_be_focused()
        keys.press("Escape")
        keys.press("?")
        expect(kim.get_by_role("dialog")).to_be_visible()
        keys.press("Escape")
        expect(kim.get_by_role("dialog")).to_be_hidden()
        keys.press("Escape")
        expect(kim.locator(".blank")).to_be_visible()
        expect(kim.locator("button.row:focus")).to_contain_text("of two lamps")


def test_a_customer_who_types_is_seen(demo: Demo, open_page: OpenPage) -> None:
    kim = agent(demo, open_page, "kim")
    visitor = Shopper(open_page(f"{demo.url}/demo/?lang=en")).open()
    visitor.human.click()
    show(kim, visitor.conversation)
    kim.keyboard.press("t")
    expect(visitor.chat.locator("chat-header")).to_contain_text("Kim Larsen")
    visitor.box.press_sequentially("Hel")
    expect(kim.locator(".typing-line")).to_contain_text("is typing")
    visitor.box.press_sequentially("lo")
    visitor.box.press("Enter")
    expect(kim.locator(".said").last).to_contain_text("Hello")
    expect(kim.locator(".typing-line")).not_to_contain_text("is typing")


def test_of_an_agents_tabs_one_rings_and_what_one_reads_all_have_read(
    demo: Demo, open_page: OpenPage
) -> None:
    first = agent(demo, open_page, "kim")
    second = first.context.new_page()
    second.goto(first.url)
    expect(second.locator(".link-line .dot.on")).to_be_visible()
    tabs = (first, second)
    for tab in tabs:
        tab.evaluate(
            """() => {
                window.rung = 0;
                const { start } = OscillatorNode.prototype, { resume } = AudioContext.prototype;
                OscillatorNode.prototype.start = function (...when) { window.rung += 1; start.apply(this, when); };
                AudioContext.prototype.resume = function () {
                    return resume.call(this).then(() => { window.maySound = true; });
                };
            }"""
        )
        tab.mouse.click(1, 1)
        tab.wait_for_function("() => window.maySound")
    with visiting(demo) as customer:
        customer.ask_for_a_person()
        customer.say("Which lamp do all tabs read by?")
        rows = [tab.locator("button.row", has_text="do all tabs read by") for tab in tabs]
        for row in rows:
            expect(row).to_have_class(re.compile(r"\bunread\b"))
        # A chime has two notes.
        until(first, lambda: sum(tab.evaluate("() => window.rung") for tab in tabs) == 2, "one chime")
        show(second, customer.conversation)
        for row in rows:
            expect(row).not_to_have_class(re.compile(r"\bunread\b"))
        assert sum(tab.evaluate("() => window.rung") for tab in tabs) == 2
