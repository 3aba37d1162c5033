"""Tabs of one shop: one socket for all, whichever of them is closed, frozen or stuck; what one reads, all have read."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.customer import visiting
from tests.browser.pages import OpenPage, halted, until
from tests.browser.shopper import Shopper
from tests.browser.story import Story
from tests.fakes.upstream.script import tokenize

QUESTION, ANOTHER = "Tell me a story", "And then?"
TALE = "Once upon a time a lamp stood in a window by the sea, and every boat found home by it."
MORE = "Then the lamp went out one night, and all the boats waited until somebody had lit it again."
PAUSE = 9
SO_FAR = "".join(tokenize(MORE)[:PAUSE])[:-1]
IN_FULL = [("mine", QUESTION), ("assistant", TALE), ("mine", ANOTHER), ("assistant", MORE)]


def three(story: Story, open_page: OpenPage) -> tuple[Shopper, Shopper, Shopper]:
    """Tabs of one visitor. The first has the line, the others have heard one answer through it."""
    first = story.shopper(open_page).open()
    second, third = first.second_tab().follow(), first.second_tab().follow()
    story.tell(TALE)
    third.ask(QUESTION)
    for tab in (first, second, third):
        assert tab.answered() == TALE
    assert sockets(first, second, third) == [1, 0, 0]
    return first, second, third


def sockets(*tabs: Shopper) -> list[int]:
    return [tab.open_sockets for tab in tabs]


def ask_and_pause(story: Story, asker: Shopper, *others: Shopper) -> None:
    """Another answer stands still in its middle, in all these tabs."""
    story.tell(MORE, pause_after=PAUSE)
    asker.ask(ANOTHER)
    story.paused()
    for tab in (asker, *others):
        expect(tab.answers.nth(1).locator(".bubble")).to_have_text(SO_FAR)


def test_when_the_tab_with_the_socket_is_closed_another_goes_on(story: Story, open_page: OpenPage) -> None:
    first, second, third = three(story, open_page)
    ask_and_pause(story, third, second)
    first.page.close()
    until(second.page, lambda: sum(sockets(second, third)) == 1, "a socket of another tab")
    story.go_on()
    assert second.answered(2) == third.answered(2) == MORE
    assert second.said() == third.said() == IN_FULL
    assert sum(sockets(second, third)) == 1


@pytest.mark.parametrize("how", ["frozen", "stuck"])
def test_a_tab_that_cannot_run_loses_the_socket_and_follows_later(
    story: Story, open_page: OpenPage, how: str
) -> None:
    first, second, third = three(story, open_page)
    ask_and_pause(story, third, second)
    with first.frozen() if how == "frozen" else halted(first.page):
        until(second.page, lambda: sum(sockets(second, third)) == 1, "a socket of another tab")
        story.go_on()
        assert second.answered(2) == third.answered(2) == MORE
    assert first.answered(2) == MORE
    until(second.page, lambda: sum(sockets(first, second, third)) == 1, "one socket again")
    assert first.open_sockets == 0
    for tab in (first, second, third):
        assert tab.said() == IN_FULL


def test_what_is_read_in_one_tab_is_unread_in_none_and_rings_once(story: Story, open_page: OpenPage) -> None:
    first = story.shopper(open_page).open()
    tabs = [first, first.second_tab().follow(), first.second_tab().follow()]
    for tab in tabs:
        tab.frame.evaluate(
            """() => {
                window.rung = 0;
                const start = OscillatorNode.prototype.start;
                OscillatorNode.prototype.start = function (...when) { window.rung += 1; start.apply(this, when); };
            }"""
        )
        tab.launcher.click()
        expect(tab.box).to_be_hidden()
    with visiting(story.demo, token=first.stored("visitor")["token"]) as elsewhere:
        story.tell(TALE)
        elsewhere.say(QUESTION)
        elsewhere.hears(TALE)
    badges = [tab.launcher.locator(".badge") for tab in tabs]
    for badge in badges:
        expect(badge).to_have_text("1")
    # A chime has two notes.
    until(first.page, lambda: sum(tab.frame.evaluate("() => window.rung") for tab in tabs) == 2, "one chime")
    tabs[2].launcher.click()
    for badge in badges:
        expect(badge).to_be_empty()
    assert sum(tab.frame.evaluate("() => window.rung") for tab in tabs) == 2
