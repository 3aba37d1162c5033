"""Reloads, tabs, lost lines and a killed process: the text so far and the rest come once each, in order."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.line import Line
from tests.browser.pages import OpenPage
from tests.browser.shopper import Shopper
from tests.browser.story import Story
from tests.fakes.upstream.script import tokenize
from tests.support.processes import Web

QUESTION = "Tell me a story"
TALE = "Once 👩‍👩‍👧‍👦 lived by the sea, and every evening they lit a lamp so that the boats would find home."
PAUSE = 12
# The last character that came may still grow, so it is not painted yet.
SO_FAR = "".join(tokenize(TALE)[:PAUSE])[:-1]
IN_FULL = [("mine", QUESTION), ("assistant", TALE)]


def ask_and_pause(story: Story, visitor: Shopper) -> None:
    """The answer stands still in its middle, painted as far as it came."""
    story.tell(TALE, pause_after=PAUSE)
    visitor.ask(QUESTION)
    story.paused()
    expect(visitor.answers.last.locator(".bubble")).to_have_text(SO_FAR)


def test_a_reload_in_the_middle_shows_the_text_so_far_and_the_rest(story: Story, open_page: OpenPage) -> None:
    visitor = story.shopper(open_page).open()
    ask_and_pause(story, visitor)
    visitor.page.reload()
    visitor.open()
    expect(visitor.answers.last.locator(".bubble")).to_have_text(SO_FAR)
    story.go_on()
    assert visitor.answered() == TALE
    assert visitor.said() == IN_FULL


def test_a_second_tab_shows_the_same_and_both_go_on_together(story: Story, open_page: OpenPage) -> None:
    first = story.shopper(open_page).open()
    ask_and_pause(story, first)
    second = first.second_tab().follow()
    expect(second.answers.last.locator(".bubble")).to_have_text(SO_FAR)
    story.go_on()
    assert first.answered() == second.answered() == TALE
    story.tell("Good night.")
    second.ask("Thank you")
    assert first.answered(2) == second.answered(2) == "Good night."
    assert first.said() == second.said()
    assert len(first.said()) == 4


def test_stop_keeps_the_painted_text_and_closes_the_models_request(story: Story, open_page: OpenPage) -> None:
    visitor = story.shopper(open_page).open()
    aborts = story.upstream.counts().aborts
    ask_and_pause(story, visitor)
    visitor.send_button.click()
    expect(visitor.answers.locator(".fate")).to_have_text(visitor.words["answer_stopped"])
    story.upstream.wait("aborts", aborts + 1)
    kept = [("mine", QUESTION), ("assistant", SO_FAR)]
    assert visitor.said() == kept
    visitor.page.reload()
    visitor.open()
    assert visitor.answered() == SO_FAR
    assert visitor.said() == kept


def test_a_lost_line_comes_back_with_what_was_missed(story: Story, open_page: OpenPage) -> None:
    line = Line("**/ws/customer")
    visitor = story.shopper(open_page, before=line.route).open()
    ask_and_pause(story, visitor)
    line.cut()
    expect(visitor.notice).to_have_text(visitor.words["reconnecting"])
    story.go_on()
    line.mend()
    assert visitor.answered() == TALE
    expect(visitor.notice).to_be_hidden()
    assert visitor.said() == IN_FULL


def test_a_text_written_without_a_line_survives_a_reload_and_is_sent_once(
    story: Story, open_page: OpenPage
) -> None:
    line = Line("**/ws/customer")
    visitor = story.shopper(open_page, before=line.route).open()
    story.tell("A first answer.")
    visitor.ask("One")
    visitor.answered()
    line.cut()
    visitor.ask("Two")
    expect(visitor.rows.last).to_contain_text(visitor.words["sending"])
    expect(visitor.notice).to_have_text(visitor.words["reconnecting_kept"])
    visitor.page.reload()
    visitor.show()
    expect(visitor.rows).to_have_count(1)
    expect(visitor.rows.last).to_contain_text("Two")
    expect(visitor.rows.last).to_contain_text(visitor.words["sending"])
    story.tell("A second answer.")
    line.mend()
    visitor.answered(2)
    assert visitor.said() == [
        ("mine", "One"), ("assistant", "A first answer."), ("mine", "Two"), ("assistant", "A second answer."),
    ]  # fmt: skip


def test_the_second_click_of_a_double_click_stops_nothing(story: Story, open_page: OpenPage) -> None:
    visitor = story.shopper(open_page).open()
    ask_and_pause(story, visitor)
    expect(visitor.send_button).to_have_accessible_name(visitor.words["stop_answer"])
    visitor.send_button.dispatch_event("click", {"detail": 2})
    story.go_on()
    assert visitor.answered() == TALE
    assert visitor.said() == IN_FULL


def test_a_killed_process_loses_nothing_and_glues_nothing(
    story: Story, second_web: Web, open_page: OpenPage
) -> None:
    visitor = story.shopper(open_page, at=second_web.url).open()
    ask_and_pause(story, visitor)
    story.tell("The whole story again.")
    second_web.kill()
    story.go_on()
    expect(visitor.notice).to_have_text(visitor.words["reconnecting"])
    second_web.revive()
    assert visitor.answered(2) == "The whole story again."
    expect(visitor.answers.first.locator(".fate")).to_have_text(visitor.words["answer_interrupted"])
    told = visitor.said()
    assert [author for author, _ in told] == ["mine", "assistant", "assistant"]
    assert TALE.startswith(told[1][1])
    assert told[1][1].startswith(SO_FAR)
    visitor.page.reload()
    visitor.open()
    visitor.answered(2)
    assert visitor.said() == told
