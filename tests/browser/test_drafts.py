"""What is typed leaves the browser only where the site wants it, and then the widget says so."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.pages import OpenPage, until
from tests.browser.shopper import Shopper
from tests.browser.story import Story

QUESTION = "Will you tell me a story?"


def drafts(shopper: Shopper) -> list[str]:
    return [frame["text"] for frame in shopper.sockets[-1].said if frame["type"] == "draft"]


def test_where_the_site_wants_it_a_draft_is_prepared_for_and_the_customer_is_told(
    story: Story, open_page: OpenPage
) -> None:
    story.tell("Once upon a time.")
    with story.reading_drafts():
        visitor = story.shopper(open_page).open()
        expect(visitor.chat.locator("#drafts")).to_have_text(visitor.words["drafts_sent"])
        visitor.box.press_sequentially(QUESTION)
        until(visitor.page, lambda: drafts(visitor)[-1:] == [QUESTION], "the draft")
        visitor.box.press("Enter")
        assert visitor.answered() == "Once upon a time."
        until(visitor.page, lambda: bool(story.last_marks(visitor.conversation)), "its record")
    assert story.last_marks(visitor.conversation)["retrieval"] == "draft"
    assert drafts(visitor)[-1] == QUESTION


def test_elsewhere_nothing_of_it_is_sent_or_even_loaded(story: Story, open_page: OpenPage) -> None:
    story.tell("Once upon a time.")
    loaded: list[str] = []
    visitor = story.shopper(
        open_page, before=lambda page: page.on("request", lambda one: loaded.append(one.url))
    )
    visitor.open()
    visitor.box.press_sequentially(QUESTION, delay=100)
    visitor.box.press("Enter")
    visitor.answered()
    expect(visitor.chat.locator("#drafts")).to_have_count(0)
    assert drafts(visitor) == []
    assert any("/chat." in url for url in loaded)
    assert not [url for url in loaded if "draft" in url]
