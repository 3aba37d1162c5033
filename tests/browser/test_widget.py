"""What the widget does with keys, names, long talks, lost credentials and pages that may not show it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Page, expect

from tests.browser.customer import visiting
from tests.browser.desk import agent, show
from tests.browser.pages import OpenPage, until
from tests.browser.shopper import Shopper
from tests.browser.story import ASSISTANT, Story
from tests.support.demo import Demo

# As an input method leaves it: a key that is being processed.
ENTER_IN_AN_IME = {"type": "rawKeyDown", "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 229}


def visitor_of_lantern(demo: Demo, open_page: OpenPage, **profile: object) -> Shopper:
    return Shopper(open_page(f"{demo.url}/demo/?lang=en", **profile))


def test_enter_that_ends_a_composition_does_not_send(demo: Demo, open_page: OpenPage) -> None:
    visitor = visitor_of_lantern(demo, open_page).open()
    ime = visitor.page.context.new_cdp_session(visitor.page)
    expect(visitor.box).to_be_focused()
    ime.send("Input.imeSetComposition", {"text": "nihao", "selectionStart": 5, "selectionEnd": 5})
    expect(visitor.box).to_have_value("nihao")
    ime.send("Input.dispatchKeyEvent", ENTER_IN_AN_IME)
    ime.send("Input.insertText", {"text": "你好"})
    expect(visitor.box).to_have_value("你好")
    assert visitor.said() == []
    visitor.page.keyboard.press("Enter")
    visitor.answered()
    assert visitor.said()[0] == ("mine", "你好")


def test_shift_and_enter_breaks_the_line(demo: Demo, open_page: OpenPage) -> None:
    visitor = visitor_of_lantern(demo, open_page).open()
    visitor.box.press_sequentially("Hello")
    visitor.box.press("Shift+Enter")
    visitor.box.press_sequentially("there")
    visitor.box.press("Enter")
    visitor.answered()
    assert visitor.said()[0] == ("mine", "Hello\nthere")


def test_who_logs_out_on_a_page_where_nobody_opened_the_chat_leaves_nothing(
    demo: Demo, open_page: OpenPage
) -> None:
    visitor = visitor_of_lantern(demo, open_page).open()
    visitor.ask("Hello")
    visitor.answered()
    visitor.box.fill("What I would never")
    visitor.launcher.click()
    visitor.page.reload()
    expect(visitor.launcher).to_be_visible()
    visitor.page.evaluate("() => chatsvc.logout()")
    visitor.open()
    assert visitor.said() == []
    expect(visitor.box).to_have_value("")


def test_everything_is_done_by_keys_alone(demo: Demo, open_page: OpenPage) -> None:
    visitor = visitor_of_lantern(demo, open_page)
    keys = visitor.page.keyboard
    expect(visitor.launcher).to_be_visible()
    visitor.page.evaluate("() => document.querySelector('footer').scrollIntoView()")
    keys.press("Shift+Tab")
    expect(visitor.launcher).to_be_focused()
    keys.press("Enter")
    visitor.welcomed()
    expect(visitor.box).to_be_focused()
    keys.type("Hello")
    keys.press("Enter")
    visitor.answered()
    menu = visitor.chat.get_by_role("button", name=visitor.words["menu"], exact=True)
    menu.focus()
    keys.press("Enter")
    items = visitor.chat.get_by_role("menuitem")
    expect(items.first).to_be_focused()
    keys.press("ArrowUp")
    expect(items.last).to_be_focused()
    keys.press("Escape")
    expect(menu).to_be_focused()
    keys.press("Enter")
    keys.press("ArrowDown")
    keys.press("Enter")
    entry = visitor.chat.locator("chat-earlier .entry")
    expect(entry.first).to_be_focused()
    keys.press("Escape")
    expect(visitor.box).to_be_focused()
    keys.press("Escape")
    expect(visitor.box).to_be_hidden()
    expect(visitor.launcher).to_be_focused()


def test_the_menu_keeps_its_focus_while_an_answer_streams(story: Story, open_page: OpenPage) -> None:
    visitor = story.shopper(open_page).open()
    story.tell("One two three four five six seven eight.", pause_after=3)
    visitor.ask("Count")
    story.paused()
    visitor.chat.get_by_role("button", name=visitor.words["menu"], exact=True).click()
    visitor.page.keyboard.press("ArrowDown")
    item = visitor.chat.get_by_role("menuitem", name=visitor.words["earlier_conversations"])
    expect(item).to_be_focused()
    story.go_on()
    visitor.answered()
    expect(item).to_be_focused()


def test_two_hundred_messages_scroll_without_a_jump(demo: Demo, story: Story, open_page: OpenPage) -> None:
    visitor = story.shopper(open_page).open()
    with visiting(demo, token=visitor.stored("visitor")["token"]) as same:
        # With a person asked for, the assistant stays silent.
        same.ask_for_a_person()
        story.said_before(same.conversation, same.customer, [f"Message {number}" for number in range(1, 200)])
        same.say("Message 200")
        newest = visitor.chat.get_by_text("Message 200", exact=True)
        expect(newest).to_be_in_viewport()
        visitor.page.reload()
        visitor.open()
        expect(newest).to_be_in_viewport()
        expect(visitor.chat.get_by_text("Message 100", exact=True)).to_have_count(0)
        _read_upwards(visitor, until_shown="Message 1")
        expect(visitor.rows).to_have_count(200)
        assert [text for _, text in visitor.said()] == [f"Message {number}" for number in range(1, 201)]
        kim = agent(demo, open_page, "kim")
        show(kim, same.conversation)
        kim.keyboard.press("t")
        expect(kim.locator(".reply textarea")).to_be_focused()
        before = visitor.scroller.evaluate("(element) => element.scrollTop")
        kim.keyboard.type("I read it all.")
        kim.keyboard.press("Enter")
        jump = visitor.chat.locator(".jump")
        expect(jump).to_have_accessible_name(visitor.words["new_below"]["one"].format(count=1))
        assert visitor.scroller.evaluate("(element) => element.scrollTop") == before
        jump.click()
        expect(visitor.chat.get_by_text("I read it all.", exact=True)).to_be_in_viewport()
        expect(jump).to_be_hidden()


def _read_upwards(visitor: Shopper, until_shown: str) -> None:
    """Scrolls to the top again and again; what the reader looks at must stay where it is."""
    first = visitor.chat.get_by_text(until_shown, exact=True)

    def further() -> bool:
        seen = visitor.frame.evaluate(
            """async () => {
              const scroller = document.querySelector(".scroller");
              const rows = () => [...document.querySelectorAll(".rows > .row")];
              scroller.scrollTop = 0;
              const top = rows()[0];
              const at = top.getBoundingClientRect().top;
              await new Promise((done) => {
                const began = performance.now();
                const look = () => {
                  if (rows()[0] !== top || performance.now() - began > 1000) done();
                  else requestAnimationFrame(look);
                };
                look();
              });
              return [at, top.getBoundingClientRect().top];
            }"""
        )
        assert abs(seen[0] - seen[1]) < 2, seen
        return bool(first.count())

    until(visitor.page, further, until_shown)


@pytest.mark.parametrize("width", [390, 1280])
def test_long_names_and_words_stay_inside(story: Story, open_page: OpenPage, width: int) -> None:
    visitor = story.shopper(open_page, viewport={"width": width, "height": 800}).open()
    story.tell("supercalifragilisticexpialidocious" * 8 + " | https://example.com/" + "a" * 200)
    visitor.ask("W" * 300)
    visitor.answered()
    header = visitor.chat.locator("chat-header")
    expect(header).to_contain_text(ASSISTANT)
    expect(header.get_by_role("button", name=visitor.words["close"])).to_be_in_viewport(ratio=1)
    inside = visitor.frame.evaluate(
        """() => [document.documentElement, document.querySelector(".scroller")]
            .map((element) => element.scrollWidth - element.clientWidth)"""
    )
    assert inside == [0, 0]


def test_the_transcript_holds_what_was_said(demo: Demo, open_page: OpenPage, tmp_path: Path) -> None:
    visitor = visitor_of_lantern(demo, open_page).open()
    visitor.ask("Can I return worn boots?")
    answer = visitor.answered()
    with visitor.page.expect_download() as download:
        visitor.choose("download_transcript")
    assert re.fullmatch(r"Lantern-\d{4}-\d\d-\d\d\.txt", download.value.suggested_filename)
    download.value.save_as(tmp_path / "transcript.txt")
    text = (tmp_path / "transcript.txt").read_text(encoding="utf-8-sig")
    for said in ("Can I return worn boots?", *answer.split("\n\n"), "[Boots you have worn]", "You", "Lumen"):
        assert said in text


def test_what_comes_while_it_is_closed_is_counted_and_marked(demo: Demo, open_page: OpenPage) -> None:
    visitor = visitor_of_lantern(demo, open_page).open()
    visitor.human.click()
    kim = agent(demo, open_page, "kim")
    show(kim, visitor.conversation)
    kim.keyboard.press("t")
    expect(visitor.chat.locator("chat-header")).to_contain_text("Kim Larsen")
    visitor.launcher.click()
    for text in ("Are you there?", "Hello?"):
        kim.keyboard.type(text)
        kim.keyboard.press("Enter")
    expect(visitor.launcher.locator(".badge")).to_have_text("2")
    expect(visitor.launcher).to_have_accessible_name("Open chat (2 unread)")
    visitor.launcher.click()
    expect(visitor.chat.locator(".unread")).to_have_text(visitor.words["new_messages"])
    expect(visitor.launcher.locator(".badge")).to_be_empty()


def test_another_language_keeps_the_conversation(demo: Demo, open_page: OpenPage) -> None:
    visitor = visitor_of_lantern(demo, open_page).open()
    visitor.ask("Hello")
    visitor.answered()
    visitor.choose("other_language")
    expect(visitor.box).to_have_attribute("placeholder", "输入消息…")
    expect(visitor.rows).to_have_count(2)
    expect(visitor.chat.locator("html")).to_have_attribute("lang", "zh-Hans")


def test_markup_is_shown_as_text(story: Story, open_page: OpenPage) -> None:
    visitor = story.shopper(open_page).open()
    markup = "<img src=x onerror=alert(1)><b>bold</b>"
    story.tell(f"{markup} [a](javascript:alert(1)) **strong**")
    visitor.ask(markup)
    visitor.answered()
    assert visitor.said()[0] == ("mine", markup)
    expect(visitor.answers.locator(".bubble strong")).to_have_text("strong")
    assert visitor.chat.locator(".bubble :is(img, b, a, script)").count() == 0


def test_a_visitors_token_that_is_refused_is_renewed(story: Story, open_page: OpenPage) -> None:
    visitor = story.shopper(open_page).open()
    visitor.frame.evaluate(
        """() => { for (const key of Object.keys(localStorage)) if (key.endsWith(":visitor"))
             localStorage.setItem(key, JSON.stringify({token: "nobody", expires_at: Date.now() + 1e10})); }"""
    )
    visitor.page.reload()
    visitor.show()
    until(visitor.page, lambda: len(visitor.sockets) >= 3, "a second try")
    visitor.welcomed()
    # One more may follow: as somebody else the tab belongs to other tabs' line.
    assert [socket.count("welcome") for socket in visitor.sockets[:3]] == [1, 0, 1]
    expect(visitor.chat.locator(".toast")).to_have_count(0)
    story.tell("Welcome back.")
    visitor.ask("Hello")
    assert visitor.answered() == "Welcome back."
    assert visitor.stored("visitor")["token"] != "nobody"


def test_an_identity_that_ran_out_is_asked_for_again(story: Story, open_page: OpenPage) -> None:
    customer = story.shopper(open_page)
    tokens = [story.identity("ines", name="Ines", lifetime_s=-3600), story.identity("ines", name="Ines")]
    customer.page.evaluate(
        "(tokens) => chatsvc.identify(() => tokens.length > 1 ? tokens.shift() : tokens[0])", tokens
    )
    customer.open()
    welcome = next(frame for frame in customer.sockets[-1].heard if frame["type"] == "welcome")
    assert (welcome["name"], welcome["verified"]) == ("Ines", True)


def test_an_identity_that_cannot_be_renewed_says_so(story: Story, open_page: OpenPage) -> None:
    customer = story.shopper(open_page)
    customer.page.evaluate("(token) => chatsvc.identify(token)", story.identity("ines", lifetime_s=-3600))
    customer.launcher.click()
    expect(customer.notice).to_have_text(customer.words["ended_login"])


@contextmanager
def foreign(open_page: OpenPage, markup: str) -> Iterator[tuple[Page, list[str]]]:
    """A page of an origin that no site allows, and what its console says."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html>" + markup.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    said: list[str] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield (
                open_page(
                    f"http://127.0.0.1:{server.server_port}/",
                    before=lambda page: page.on("console", lambda message: said.append(message.text)),
                ),
                said,
            )
        finally:
            server.shutdown()


def test_a_page_that_is_not_allowed_is_told_in_its_console(story: Story, open_page: OpenPage) -> None:
    snippet = f'<script async src="{story.demo.url}/widget.js" data-site="{story.site}"></script>'
    with foreign(open_page, snippet) as (page, said):
        until(page, lambda: any("[chatsvc]" in line for line in said), "a word in the console")
        line = next(line for line in said if "[chatsvc]" in line)
        assert f"Pages of {page.url.rstrip('/')} may not show the chat" in line
        assert "allowed origins in the admin" in line
        expect(page.locator("chatsvc-widget")).to_have_count(0)


def test_a_page_that_is_allowed_no_longer_loses_its_chat(story: Story, open_page: OpenPage) -> None:
    visitor = story.shopper(open_page).open()
    with story.off_the_list():
        expect(visitor.notice).to_have_text(visitor.words["ended"])


def test_a_site_that_is_unknown_is_told_in_the_console(story: Story, open_page: OpenPage) -> None:
    snippet = f'<script async src="{story.demo.url}/widget.js" data-site="nobody"></script>'
    with foreign(open_page, snippet) as (page, said):
        until(page, lambda: any("[chatsvc]" in line for line in said), "a word in the console")
        assert any('There is no site "nobody"' in line for line in said)


def test_a_foreign_page_cannot_frame_the_widget(story: Story, open_page: OpenPage) -> None:
    frame = f'<iframe src="{story.demo.url}/widget/{story.site}/"></iframe>'
    with foreign(open_page, frame) as (page, said):
        until(page, lambda: any("frame-ancestors" in line for line in said), "the browser's refusal")
        expect(page.frame_locator("iframe").locator("chat-app")).to_have_count(0)
