"""Networks that let no WebSocket through: the widget and the dashboard go other ways by themselves, and come back."""

from __future__ import annotations

import re

from playwright.sync_api import Page, Route, WebSocketRoute, expect

from tests.browser.desk import agent
from tests.browser.pages import OpenPage, until
from tests.browser.shopper import Shopper
from tests.browser.story import Story

GOING_AWAY = 1001
QUESTION = "Tell me a story"
TALE = "Once 👩‍👩‍👧‍👦 lived by the sea, and every evening they lit a lamp so that the boats would find home."
ANOTHER = "And the boats came home."
KEPT = "() => localStorage.getItem('chatsvc-way') !== null"


class Network:
    """Give `route` to a page before it goes anywhere. What was asked over HTTP stands in `asked`."""

    def __init__(self, sockets: str = "blocked", streams: str = "open") -> None:
        self.sockets = sockets
        self.streams = streams
        self.asked: list[str] = []
        self.opened = self.tried = 0

    def route(self, page: Page) -> None:
        page.route_web_socket("**/ws/*", self._connect)
        page.on("request", lambda request: self.asked.append(request.url))
        if self.streams == "kept back":
            page.route("**/api/v1/stream/*", self._keep_back)

    def count(self, edge: str) -> int:
        return sum(f"/api/v1/{edge}/" in url for url in self.asked)

    def _keep_back(self, route: Route) -> None:
        """Never answers, but to the question whether anybody is there."""
        if route.request.method == "OPTIONS":
            route.continue_()

    def _connect(self, page: WebSocketRoute) -> None:
        self.tried += 1
        if self.sockets == "blocked":
            page.close(code=GOING_AWAY)
        elif self.sockets == "open":
            self.opened += 1
            page.connect_to_server()
        # "swallowed": it is open, and nothing that is said arrives


def asked(story: Story, visitor: Shopper) -> None:
    """Opens the chat, asks, and has the whole answer."""
    visitor.launcher.click()
    expect(visitor.box).to_be_visible()
    story.tell(TALE)
    visitor.ask(QUESTION)
    assert visitor.answered() == TALE
    expect(visitor.notice).to_be_hidden()
    assert visitor.said() == [("mine", QUESTION), ("assistant", TALE)]


def test_where_sockets_are_blocked_a_stream_carries_the_line(story: Story, open_page: OpenPage) -> None:
    network = Network()
    visitor = story.shopper(open_page, before=network.route)
    asked(story, visitor)
    assert network.count("stream") >= 1
    assert network.count("frames") >= 1
    assert network.count("poll") == 0
    kept = visitor.page.frames[1].evaluate("Object.values(localStorage).join()")
    tokens = re.findall(r'"token":"([^"]+)"', kept)
    assert tokens
    assert not [url for url in network.asked for token in tokens if token in url]


def test_a_socket_that_swallows_what_is_said_gives_way_to_a_stream(story: Story, open_page: OpenPage) -> None:
    network = Network(sockets="swallowed")
    asked(story, story.shopper(open_page, before=network.route))
    assert network.count("stream") >= 1


def test_a_stream_that_a_proxy_keeps_back_gives_way_to_polls(story: Story, open_page: OpenPage) -> None:
    network = Network(streams="kept back")
    asked(story, story.shopper(open_page, before=network.route))
    assert network.count("poll") >= 2


def test_the_next_page_knows_what_worked(story: Story, open_page: OpenPage) -> None:
    network = Network()
    visitor = story.shopper(open_page, before=network.route)
    asked(story, visitor)
    until(visitor.page, lambda: visitor.frame.evaluate(KEPT), "a look for a better way that was in vain")
    tried = network.tried
    visitor.page.reload()
    visitor.show()
    assert visitor.answered() == TALE
    visitor.connected()
    assert network.tried == tried


def test_two_tabs_share_a_stream_too(story: Story, open_page: OpenPage) -> None:
    network = Network()
    first = story.shopper(open_page, before=network.route)
    asked(story, first)
    streams = network.count("stream")
    second = first.second_tab(before=network.route).follow()
    assert second.answered() == TALE
    story.tell(ANOTHER)
    second.ask("And then?")
    assert first.answered(2) == second.answered(2) == ANOTHER
    assert first.said() == second.said()
    assert (network.count("stream"), network.count("poll")) == (streams, 0)


def test_a_socket_carries_the_line_again_once_it_works(story: Story, open_page: OpenPage) -> None:
    network = Network()
    visitor = story.shopper(open_page, before=network.route)
    asked(story, visitor)
    network.sockets = "open"
    visitor.page.frames[1].evaluate("dispatchEvent(new Event('online'))")
    until(visitor.page, lambda: network.opened >= 2, "a probe and a line")
    visitor.connected()
    expect(visitor.notice).to_be_hidden()
    posts = network.count("frames")
    story.tell(ANOTHER)
    visitor.ask("And then?")
    assert visitor.answered(2) == ANOTHER
    assert network.count("frames") == posts
    assert [text for _, text in visitor.said()] == [QUESTION, TALE, "And then?", ANOTHER]


def test_an_agent_without_sockets_sees_the_inbox_and_answers(story: Story, open_page: OpenPage) -> None:
    network = Network()

    def open_routed(url: str, **profile: object) -> Page:
        return open_page(url, before=network.route, **profile)

    kim = agent(story.demo, open_routed, "kim")
    expect(kim.locator("inbox-list .row").first).to_be_visible()
    assert network.count("stream") >= 1
    assert network.count("poll") == 0
    # An origin has six connections: of two pages one may keep one waiting.
    second = kim.context.new_page()
    network.route(second)
    second.goto(kim.url)
    expect(second.locator("inbox-list .row").first).to_be_visible()
    until(second, lambda: network.count("poll") >= 2, "polls of the second page")
