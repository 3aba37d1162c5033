"""Proxies that swallow one direction, a laptop that sleeps, a minute without a network: nothing lost, nothing twice."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.customer import visiting
from tests.browser.line import HTTP, Line
from tests.browser.pages import OpenPage, until
from tests.browser.shopper import Shopper
from tests.browser.story import Story

QUESTION, ANOTHER = "Tell me a story", "And then?"
TALE = "Once upon a time a lamp stood in a window by the sea."
MORE = "And every boat found home by it."
# Longer than any answer of the server may take.
PATIENCE_MS = 16_000
A_MINUTE_MS = 60_000


def on_a_clock(story: Story, open_page: OpenPage, line: Line) -> Shopper:
    """A visitor with one answer, whose page lets the test skip waits."""

    def prepare(page: Page) -> None:
        page.clock.install()
        line.route(page)

    visitor = story.shopper(open_page, before=prepare).open()
    story.tell(TALE)
    visitor.ask(QUESTION)
    visitor.answered()
    return visitor


@pytest.mark.parametrize("what", ["what we say", "what we hear"])
def test_a_proxy_that_swallows_one_direction_is_found_out(
    story: Story, open_page: OpenPage, what: str
) -> None:
    line = Line("**/ws/customer")
    visitor = on_a_clock(story, open_page, line)
    if what == "what we say":
        line.swallow()
    else:
        line.hold()
    story.tell(MORE)
    visitor.ask(ANOTHER)
    expect(visitor.chat.get_by_text(ANOTHER, exact=True)).to_be_visible()
    assert len(visitor.sockets) == 1
    visitor.page.clock.fast_forward(PATIENCE_MS)
    until(visitor.page, lambda: visitor.sockets[0].closed, "that the socket is given up")
    line.mend()
    visitor.page.clock.fast_forward(PATIENCE_MS)
    assert visitor.answered(2) == MORE
    assert [text for _, text in visitor.said()] == [QUESTION, TALE, ANOTHER, MORE]


def test_a_laptop_that_slept_shows_what_came_meanwhile(story: Story, open_page: OpenPage) -> None:
    visitor = story.shopper(open_page).open()
    story.tell(TALE)
    visitor.ask(QUESTION)
    visitor.answered()
    token = visitor.stored("visitor")["token"]
    with visitor.frozen(), visiting(story.demo, token=token) as elsewhere:
        story.tell(MORE)
        elsewhere.say(ANOTHER)
        elsewhere.hears(MORE)
    assert visitor.answered(2) == MORE
    assert [text for _, text in visitor.said()] == [QUESTION, TALE, ANOTHER, MORE]
    assert [socket.count("welcome") for socket in visitor.sockets] == [1, 1]


def test_when_all_is_back_that_was_gone_a_socket_is_tried_before_another_way(
    story: Story, open_page: OpenPage
) -> None:
    line = Line("**/ws/customer")
    visitor = story.shopper(open_page, before=line.route).open()
    asked: list[str] = []
    visitor.page.on("request", lambda request: asked.append(request.url))
    with visitor.page.expect_event("requestfailed", lambda request: "wire/fallback" in request.url):
        line.cut()
        visitor.page.context.set_offline(True)
    # Without another way a socket was dialled, in vain.
    refused = line.refused
    until(visitor.page, lambda: line.refused > refused, "another attempt")
    line.mend()
    visitor.page.context.set_offline(False)
    visitor.connected()
    story.tell(TALE)
    visitor.ask(QUESTION)
    assert visitor.answered() == TALE
    assert not [url for url in asked if HTTP.search(url)]


def test_a_minute_offline_while_both_sides_write(story: Story, open_page: OpenPage) -> None:
    line = Line("**/ws/customer")
    visitor = on_a_clock(story, open_page, line)
    token = visitor.stored("visitor")["token"]
    line.cut()
    visitor.page.context.set_offline(True)
    expect(visitor.notice).to_have_text(visitor.words["offline"])
    for text in ("First of mine", "Second of mine"):
        visitor.ask(text)
    expect(visitor.notice).to_have_text(visitor.words["offline_kept"])
    with visiting(story.demo, token=token) as elsewhere:
        # With a person asked for, the assistant stays silent.
        elsewhere.ask_for_a_person()
        for text in ("First of theirs", "Second of theirs"):
            elsewhere.say(text)
        visitor.page.clock.fast_forward(A_MINUTE_MS)
        line.mend()
        visitor.page.context.set_offline(False)
        visitor.connected()
        expect(visitor.rows).to_have_count(6)
        for text in ("First of mine", "Second of mine"):
            elsewhere.hears(text)
    said = [text for _, text in visitor.said()]
    assert said == [QUESTION, TALE, "First of theirs", "Second of theirs", "First of mine", "Second of mine"]
