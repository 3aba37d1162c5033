"""What a customer's browser reports of its paint is what the agent reads at the answer."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from apps.telemetry.waterfall import STAGES
from tests.browser.desk import agent, show
from tests.browser.pages import OpenPage, until
from tests.browser.shopper import Shopper
from tests.support.demo import Demo

SEEN = re.compile(r"The customer saw it after [\d.,]+ ms · we added [\d.,]+ ms")


def test_the_paint_of_an_answer_is_shown_with_its_stages_live_and_after_a_reload(
    demo: Demo, open_page: OpenPage
) -> None:
    kim = agent(demo, open_page, "kim")
    mia = Shopper(open_page(f"{demo.url}/demo/")).open()
    mia.ask("Can I return worn boots?")
    until(mia.page, lambda: mia.sockets[-1].count("turn.ended") > 0, "the answer")
    conversation = next(
        frame["conversation"] for frame in mia.sockets[-1].heard if frame["type"] == "welcome"
    )
    show(kim, conversation)
    trace = kim.locator(".said.assistant .trace").last
    expect(trace.locator("summary")).to_have_text(SEEN)
    trace.locator("summary").focus()
    kim.keyboard.press("Enter")
    expect(trace.locator("dt")).to_have_count(len(STAGES))
    expect(trace.locator("dt").first).to_have_text("DNS")
    mia.ask("And lamps?")
    expect(kim.locator(".said.assistant .trace summary")).to_have_text([SEEN, SEEN])
    kim.reload()
    expect(kim.locator(".said.assistant .trace summary")).to_have_text([SEEN, SEEN])
    expect(kim.locator("context-pane .quiet-note", has_text=SEEN)).to_be_visible()
