"""The product's main job in two browsers: a shop's customer asks, the assistant answers, a person takes over."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from chatsvc.management.commands.seed_demo import SITE
from tests.browser.desk import agent, log_in, show, state, take_after
from tests.browser.line import Line
from tests.browser.pages import OpenPage, until
from tests.browser.shopper import Shopper
from tests.fakes.shop.catalog import lantern
from tests.support.demo import Demo
from tests.support.processes import Web


@dataclass(frozen=True, slots=True)
class Language:
    """What a customer asks in a language, and the words that tell the answers apart."""

    code: str
    order: str
    another_order: str
    on_its_way: str
    not_in_account: str
    log_in: str
    boots: str
    article: str
    unanswerable: str
    does_not_know: str
    yes: str
    person: str
    refund: str


ENGLISH = Language(
    code="en",
    order="Where is my order 1042?",
    another_order="Where is my order 7777?",
    on_its_way="is on its way",
    not_in_account="can't find order 1042",
    log_in="Please log in",
    boots="Can I return worn boots?",
    article="Boots you have worn",
    unanswerable="Can you file my taxes?",
    does_not_know="I don't have an answer to that",
    yes="Yes please",
    person="I'd like to talk to a person",
    refund="When do I get my refund?",
)
CHINESE = Language(
    code="zh",
    order="我的订单1042到哪了",
    another_order="我的订单7777到哪了",
    on_its_way="正在运送途中",
    not_in_account="没有找到订单 1042",
    log_in="请先登录",
    boots="穿过的靴子可以退吗？",
    article="穿过的靴子",
    unanswerable="你们能帮我报税吗？",
    does_not_know="我没有可靠的答案",
    yes="好的",
    person="我想和人工客服聊聊",
    refund="退款什么时候到账？",
)
TODAY = datetime.now(UTC).date()
in_both_languages = pytest.mark.parametrize(
    "language", [ENGLISH, CHINESE], ids=lambda language: language.code
)


def shopper(open_page: OpenPage, demo: Demo, language: Language = ENGLISH, *, at: str = "") -> Shopper:
    page = open_page(f"{at or demo.url}/demo/?lang={language.code}", viewport={"width": 1280, "height": 800})
    return Shopper(page, language.code)


def mia(open_page: OpenPage, demo: Demo, language: Language = ENGLISH, *, at: str = "") -> Shopper:
    """Mia, who is verified and gold, in a conversation of her own."""
    return shopper(open_page, demo, language, at=at).become("mia").open().start_anew()


def words(customer: Shopper, key: str, **values: str) -> str:
    """A sentence of the widget's catalog with its names filled in."""
    return str(customer.words[key]).format(**values)


@in_both_languages
def test_opening_the_widget_opens_one_socket_and_greets(
    demo: Demo, open_page: OpenPage, language: Language
) -> None:
    visitor = shopper(open_page, demo, language)
    visitor.launcher.hover()
    expect(visitor.box).to_be_attached()
    assert visitor.sockets == []
    visitor.open()
    greeting, suggestions = SITE[f"greeting_{language.code}"], SITE[f"suggestions_{language.code}"]
    expect(visitor.chat.locator(".greeting .bubble")).to_have_text(str(greeting))
    expect(visitor.chat.locator(".suggestion")).to_have_text(list(suggestions))
    expect(visitor.box).to_be_focused()
    visitor.launcher.click()
    expect(visitor.box).to_be_hidden()
    visitor.launcher.click()
    expect(visitor.box).to_be_focused()
    assert [(socket.count("welcome"), socket.closed) for socket in visitor.sockets] == [(1, False)]


def test_a_chat_that_was_open_is_open_on_the_next_page_and_leaves_the_focus_alone(
    demo: Demo, open_page: OpenPage
) -> None:
    visitor = shopper(open_page, demo).open()
    visitor.page.goto(f"{demo.url}/demo/?lang=zh")
    expect(visitor.launcher).to_have_attribute("aria-expanded", "true")
    visitor.connected()
    assert visitor.page.evaluate("document.activeElement === document.body")
    expect(visitor.second_tab().launcher).to_have_attribute("aria-expanded", "false")
    visitor.launcher.click()
    visitor.page.reload()
    expect(visitor.launcher).to_have_attribute("aria-expanded", "false")


def test_whoever_is_logged_in_is_so_in_every_tab_of_the_shop(demo: Demo, open_page: OpenPage) -> None:
    first = shopper(open_page, demo).become("mia").open()
    second = first.second_tab().follow()
    expect(second.page.locator("input[value=mia]")).to_be_checked()
    first.start_anew().ask("Hello")
    assert first.answered() == second.answered() == "Hello Mia! What can I help you with?"
    second.become("")
    expect(first.page.locator("input[name=customer][value='']")).to_be_checked()
    for tab in (first, second):
        expect(tab.rows).to_have_count(0)


def test_the_log_in_switch_changes_who_is_talking(demo: Demo, open_page: OpenPage) -> None:
    customer = shopper(open_page, demo).open()
    customer.ask("I am only looking around")
    customer.answered()
    customer.become("mia").start_anew()
    customer.ask("Hello")
    assert customer.answered() == "Hello Mia! What can I help you with?"
    customer.become("leo")
    assert "Mia" not in customer.frame.locator("chat-thread").inner_text()
    customer.start_anew().ask("Hello")
    assert customer.answered() == "Hello Leo! What can I help you with?"
    customer.become("")
    expect(customer.rows).to_have_count(0)


@in_both_languages
def test_a_customer_reads_the_real_state_of_an_order(
    demo: Demo, open_page: OpenPage, language: Language
) -> None:
    customer = mia(open_page, demo, language)
    customer.ask(language.order)
    answer = customer.answered()
    order = lantern(TODAY)["mia"].orders[0]
    for fact in (
        "1042",
        language.on_its_way,
        order.carrier,
        order.tracking,
        str(date.fromisoformat(order.eta).day),
    ):
        assert fact in answer
    assert customer.said() == [("mine", language.order), ("assistant", answer)]


@in_both_languages
def test_a_visitor_is_asked_to_log_in_and_learns_nothing(
    demo: Demo, open_page: OpenPage, language: Language
) -> None:
    visitor = shopper(open_page, demo, language).open()
    visitor.ask(language.order)
    real = visitor.answered()
    visitor.ask(language.another_order)
    invented = visitor.answered(2)
    assert language.log_in in real
    assert real == invented


@in_both_languages
def test_another_customers_order_is_not_found(demo: Demo, open_page: OpenPage, language: Language) -> None:
    leo = shopper(open_page, demo, language).become("leo").open().start_anew()
    leo.ask(language.order)
    answer = leo.answered()
    assert language.not_in_account in answer
    assert lantern(TODAY)["mia"].orders[0].tracking not in answer


@in_both_languages
def test_an_answer_names_its_article(demo: Demo, open_page: OpenPage, language: Language) -> None:
    visitor = shopper(open_page, demo, language).open()
    visitor.chat.locator(".suggestion").nth(1).click()
    visitor.answered()
    expect(visitor.rows.first).to_have_text(re.compile(re.escape(language.boots)))
    expect(visitor.answers.last.locator(".sources .chip")).to_have_text(language.article)


@in_both_languages
def test_a_question_nobody_can_answer_says_so_and_offers_a_person(
    demo: Demo, open_page: OpenPage, language: Language
) -> None:
    visitor = shopper(open_page, demo, language).open()
    visitor.ask(language.unanswerable)
    assert language.does_not_know in visitor.answered()
    visitor.ask(language.yes)
    visitor.answered(2)
    expect(visitor.system_lines).to_have_text([visitor.words["handing_over"]])


def test_an_answer_grows_and_what_was_shown_stays(demo: Demo, open_page: OpenPage) -> None:
    visitor = shopper(open_page, demo).open()
    visitor.watch_growth()
    visitor.ask(ENGLISH.boots)
    whole = visitor.answered()
    grown = visitor.grown()
    assert len(grown) > 10
    assert "".join(whole.split()) == "".join(grown[-1].split())
    # Marks of Markdown may turn into their meaning once they close; letters only ever follow.
    letters = [re.sub(r"\W", "", text) for text in grown]
    assert [pair for pair in pairwise(letters) if not pair[1].startswith(pair[0])] == []


@in_both_languages
def test_stop_keeps_exactly_the_text_painted(demo: Demo, open_page: OpenPage, language: Language) -> None:
    visitor = shopper(open_page, demo, language).open()
    visitor.stop_after(12)
    visitor.ask(language.boots)
    expect(visitor.answers.locator(".fate")).to_have_text(visitor.words["answer_stopped"])
    expect(visitor.send_button).to_have_accessible_name(visitor.words["send"])
    kept = visitor.said()
    assert len(kept[1][1]) >= 12
    # What goes on coming from the same socket must not add to it.
    visitor.ask(language.unanswerable)
    visitor.answered(2)
    assert visitor.said()[:2] == kept
    visitor.page.reload()
    visitor.open()
    expect(visitor.answers).to_have_count(2)
    assert visitor.said()[:2] == kept


def test_a_rule_saved_in_the_admin_acts_in_both_web_processes(
    demo: Demo, second_web: Web, open_page: OpenPage
) -> None:
    """Gold customers who mention a voucher go to Returns; nobody restarts anything."""
    everywhere = []
    for at in (demo.url, second_web.url):
        customer = mia(open_page, demo, at=at)
        customer.ask("Do you have a voucher for me?")
        customer.answered()
        assert customer.system_lines.count() == 0
        everywhere.append(customer)
    admin = open_page(f"{demo.url}/admin/rulebook/rule/add/")
    log_in(admin, demo, "admin")
    admin.locator("#id_site").select_option(label="Lantern")
    admin.locator("#id_name").fill("Gold customers' vouchers")
    admin.locator("#id_position").fill("5")
    admin.locator("#id_condition").fill('tier == "gold" && text_lower.contains("voucher")')
    admin.locator("#id_reply_en").fill("Our returns team looks after vouchers.")
    admin.locator("#id_handoff").check()
    admin.locator("#id_team").select_option(label="Returns")
    admin.locator("[name=_save]").click()
    expect(admin.get_by_text("was added successfully")).to_be_visible()
    for customer in everywhere:
        # Asked again until it acts: how soon is measured elsewhere.
        until(customer.page, partial(_hands_over, customer), "the rule to act")
        assert customer.said()[-1] == ("assistant", "Our returns team looks after vouchers.")


def _hands_over(customer: Shopper) -> bool:
    customer.start_anew().ask("Do you have a voucher for me?")
    customer.answered()
    handing_over = customer.system_lines.filter(has_text=customer.words["handing_over"])
    expect(handing_over.or_(customer.human.filter(visible=True))).to_be_visible()
    return handing_over.count() > 0


def test_the_button_calls_a_person_who_answers_hands_back_and_resolves(
    demo: Demo, open_page: OpenPage
) -> None:
    kim = agent(demo, open_page, "kim")
    customer = mia(open_page, demo)
    customer.ask(ENGLISH.order)
    customer.answered()
    customer.human.click()
    expect(customer.system_lines).to_have_text([customer.words["asked_for_human"]])
    expect(kim.locator("#announcer")).to_have_text(re.compile("Mia Chen is waiting for a person"))
    expect(kim).to_have_title(re.compile(r"^\(\d+\) Inbox"))
    show(kim, customer.conversation)
    kim.keyboard.press("t")
    expect(customer.system_lines.last).to_have_text(words(customer, "joined", name="Kim Larsen"))
    expect(customer.chat.locator("chat-header h1")).to_have_text("Kim Larsen")
    expect(kim.locator(".reply textarea")).to_be_focused()
    kim.keyboard.type("Hello Mia, it is")
    expect(customer.chat.locator(".row.typing")).to_have_text(re.compile("Kim Larsen is typing"))
    kim.keyboard.type(" on its way.")
    kim.keyboard.press("Enter")
    expect(customer.rows.last).to_contain_text("Hello Mia, it is on its way.")
    expect(customer.chat.locator(".row.typing")).to_have_count(0)
    # The assistant never speaks over a person.
    customer.ask(ENGLISH.boots)
    expect(kim.locator(".said").last).to_contain_text(ENGLISH.boots)
    kim.keyboard.type("Yes, within 30 days.")
    kim.keyboard.press("Enter")
    expect(customer.rows.last).to_contain_text("Yes, within 30 days.")
    assert [author for author, _ in customer.said()] == ["mine", "assistant", "agent", "mine", "agent"]
    kim.keyboard.press("Escape")
    kim.keyboard.press("b")
    expect(customer.system_lines.last).to_have_text(words(customer, "handed_back", name="Kim Larsen"))
    customer.ask(ENGLISH.order)
    customer.answered(2)
    kim.keyboard.press("e")
    expect(customer.system_lines.last).to_have_text(customer.words["resolved"])
    expect(customer.chat.locator("chat-header")).to_contain_text(customer.words["resolved_short"])


@in_both_languages
def test_a_rule_hands_over(demo: Demo, open_page: OpenPage, language: Language) -> None:
    kim = agent(demo, open_page, "kim")
    customer = mia(open_page, demo, language)
    customer.ask(language.refund)
    customer.answered()
    expect(customer.system_lines).to_have_text([customer.words["handing_over"]])
    show(kim, customer.conversation)
    expect(state(kim)).to_contain_text("Waiting for a person")


@in_both_languages
def test_the_assistant_itself_hands_over(demo: Demo, open_page: OpenPage, language: Language) -> None:
    kim = agent(demo, open_page, "kim")
    visitor = shopper(open_page, demo, language).open()
    visitor.chat.get_by_role("button", name=language.person).click()
    visitor.answered()
    expect(visitor.system_lines).to_have_text([visitor.words["handing_over"]])
    show(kim, visitor.conversation)
    expect(state(kim)).to_contain_text("Waiting for a person")


def test_an_agent_sees_the_answer_stream_and_takes_over_in_its_middle(
    demo: Demo, open_page: OpenPage
) -> None:
    kim = agent(demo, open_page, "kim")
    customer = mia(open_page, demo)
    customer.ask("Hello")
    customer.answered()
    show(kim, customer.conversation)
    take_after(kim, 12)
    customer.ask(ENGLISH.boots)
    live = kim.locator(".said.streamed .bubble").last
    expect(state(kim)).to_contain_text("You answer")
    taken_over = words(customer, "answer_taken_over_by", name="Kim Larsen")
    expect(customer.answers.last.locator(".fate")).to_have_text(taken_over)
    expect(kim.locator(".said .cut")).to_be_visible()
    cut = customer.said()[-1][1]
    assert cut.startswith("Yes, you can return")
    expect(live).to_have_text(re.compile(r"\W*".join(re.findall(r"\w+", cut)) + r"\W*$"))
    customer.page.reload()
    customer.open()
    expect(customer.answers).to_have_count(2)
    assert customer.said()[-1][1] == cut


def test_of_two_agents_on_two_processes_one_wins_and_the_other_is_told(
    demo: Demo, second_web: Web, open_page: OpenPage
) -> None:
    """Both press the button while both see it: the news of the other's has not reached Ana yet."""
    line = Line("**/ws/agent")
    kim = agent(demo, open_page, "kim")
    ana = agent(demo, open_page, "ana", at=second_web.url, before=line.route)
    visitor = shopper(open_page, demo).open()
    visitor.human.click()
    for page in (kim, ana):
        show(page, visitor.conversation)
        expect(state(page)).to_contain_text("Waiting for a person")
    line.hold()
    kim.keyboard.press("t")
    expect(state(kim)).to_contain_text("You answer")
    expect(state(ana)).to_contain_text("Waiting for a person")
    ana.keyboard.press("t")
    line.release()
    expect(ana.locator("toast-stack")).to_contain_text("Kim Larsen already took it")
    expect(state(ana)).to_contain_text("Kim Larsen answers")
    expect(ana.locator(".reply textarea")).to_be_hidden()
    expect(state(kim)).to_contain_text("You answer")
    expect(visitor.system_lines.last).to_have_text(words(visitor, "joined", name="Kim Larsen"))


def test_with_nobody_there_the_customer_reads_the_hours_and_leaves_an_address(
    demo: Demo, open_page: OpenPage
) -> None:
    visitor = shopper(open_page, demo).open()
    visitor.human.click()
    card = visitor.chat.locator("chat-waiting")
    expect(card.locator(".headline")).to_have_text(visitor.words["nobody_here"])
    expect(visitor.chat.locator("chat-header")).to_contain_text(visitor.words["state_away"])
    card.locator("summary").click()
    expect(card.locator(".hours dl")).to_have_text(re.compile("Mon – Sun.*00:00 – 23:59"))
    card.get_by_label(visitor.words["email_label"]).fill("not@an")
    card.get_by_role("button").click()
    expect(card.get_by_role("alert")).to_have_text(visitor.words["email_refused"])
    card.get_by_label(visitor.words["email_label"]).fill("lost@example.com")
    card.get_by_role("button").click()
    expect(card).to_contain_text(visitor.words["contact_known"])
    expect(visitor.system_lines.last).to_have_text(visitor.words["contact_left"])
    # Somebody comes, and the card tells.
    kim = agent(demo, open_page, "kim")
    expect(visitor.chat.locator("chat-header")).to_contain_text(visitor.words["state_queue"])
    expect(card.locator(".headline")).not_to_have_text(visitor.words["nobody_here"])
    show(kim, visitor.conversation)
    expect(state(kim)).to_contain_text("Waiting for a person")


def test_a_customer_starts_anew_and_finds_the_earlier_conversation(demo: Demo, open_page: OpenPage) -> None:
    visitor = shopper(open_page, demo).open()
    visitor.ask(ENGLISH.boots)
    visitor.answered()
    first = visitor.said()
    visitor.start_anew()
    expect(visitor.chat.locator(".suggestion")).to_have_count(3)
    visitor.ask("Hello")
    visitor.answered()
    visitor.choose("earlier_conversations")
    entries = visitor.chat.locator("chat-earlier .entry")
    expect(entries).to_have_count(2)
    expect(entries.first).to_have_attribute("aria-current", "true")
    entries.nth(1).click()
    expect(visitor.answers.locator(".chip")).to_have_text(ENGLISH.article)
    assert visitor.said() == first
