"""Every page of the admin opens; nobody sees another workspace; secrets go in and never come out."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import Agent, AnswerCacheMode, Site, Team
from apps.conversations.models import Conversation, Message, OutboxItem
from apps.customers.models import Customer, ProfileSource
from tests.db.admin_world import MODEL_KEY, PASSWORD, SHOP_KEY, Corner, logged_in, outbox_item

pytestmark = pytest.mark.django_db


@pytest.fixture
def superuser(ours: Corner) -> Client:
    return logged_in(User.objects.create_superuser("root", password=PASSWORD))


def page(row: Any, name: str = "change") -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_{name}", args=(row.pk,))


def listing(model: Any, name: str = "changelist") -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{name}")


SITE_FORM = {
    "name": "Lantern",
    "allowed_origins": "https://shop.example/\nhttp://localhost:8000",
    "accent": "#2f5bea",
    "greeting_en": "Hello",
    "greeting_zh": "您好",
    "suggestions_en": "Where is my order?\n\nCan I return boots?",
    "suggestions_zh": "",
    "assistant_name": "Lumen",
    "instructions": "",
    "answer_cache": "exact",
    "daily_spend_cap": "",
    "speculation_tokens": "30000",
}


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_page_opens_for_a_superuser(superuser: Client, ours: Corner, language: str) -> None:
    outbox_item()
    superuser.cookies.load({"django_language": language})
    assert superuser.get(reverse("admin:index")).status_code == 200
    for model, model_admin in admin.site._registry.items():
        assert superuser.get(listing(model)).status_code == 200, model
        assert superuser.get(listing(model), {"q": "x"}).status_code == 200, model
        adds = superuser.get(listing(model, "add")).status_code
        may_add = model_admin.has_add_permission(superuser.get("/admin/").wsgi_request)
        assert adds == (200 if may_add else 403), model
        for row in model._default_manager.all()[:1]:
            assert superuser.get(page(row)).status_code == 200, model
            assert superuser.get(page(row, "history")).status_code == 200, model


def test_an_admin_agent_sees_the_own_workspace_and_no_other(
    boss: Client, ours: Corner, theirs: Corner
) -> None:
    for row in ours.rows():
        body = boss.get(listing(type(row)))
        assert body.status_code == 200
        assert b"theirs" not in body.content, row
        assert boss.get(page(row)).status_code == 200, row
    for row in theirs.rows():
        for name in ("change", "history"):
            assert boss.get(page(row, name)).status_code == 404, row
        assert boss.post(page(row), {}).status_code in (403, 404), row
    assert b"theirs" not in boss.get(reverse("admin:index")).content


def test_the_entry_page_counts_and_warns_for_the_own_workspace(
    boss: Client, superuser: Client, ours: Corner, theirs: Corner
) -> None:
    mine, everything = (client.get(reverse("admin:index")) for client in (boss, superuser))
    assert [figure["value"] for figure in mine.context["figures"]] == [1, 0, 2, "1.25"]
    assert [figure["value"] for figure in everything.context["figures"]] == [2, 0, 4, "2.50"]
    assert len(mine.context["warnings"]) == 1
    assert len(everything.context["warnings"]) == 2
    assert b"ours model" in mine.content


@pytest.mark.parametrize("demo", [True, False])
def test_an_empty_entry_page_names_the_demo_shop_only_where_there_is_one(demo: bool, settings: Any) -> None:
    settings.DEMO = demo
    superuser = logged_in(User.objects.create_superuser("root", password=PASSWORD))
    shown = superuser.get(reverse("admin:index")).content.decode()
    assert "Nobody has written yet." in shown
    assert ("open the demo shop" in shown) == demo


def test_the_help_on_conditions_speaks_the_readers_language(superuser: Client) -> None:
    superuser.cookies.load({"django_language": "zh-hans"})
    shown = superuser.get("/admin/rulebook/rule/add/").content.decode()
    assert "营业时间内为 true" in shown
    assert "true in business hours" not in shown


def test_what_the_database_calls_things_is_said_in_the_readers_language(
    superuser: Client, ours: Corner
) -> None:
    """Every column and filter has a translated name; states are words, not the values that are stored."""
    superuser.cookies.load({"django_language": "zh-hans"})
    for model in admin.site._registry:
        page_text = superuser.get(listing(model)).content.decode()
        icons = r"<(script|style)\b.*?</\1>|<span[^>]*material-symbols.*?</span>"
        shown = re.sub(icons, "", page_text, flags=re.S)
        for head in re.findall(r"<thead.*?</thead>", shown, flags=re.S):
            assert re.findall(r">([^<\u4e00-\u9fff]*[A-Za-z]{3}[^<\u4e00-\u9fff]*)<", head) == [], model
        assert re.findall(r">\s*(complete|finished|taken[_ ]over|customer|assistant)\s*<", shown) == [], model


def test_a_list_of_messages_shows_them_as_they_are_read(superuser: Client, ours: Corner) -> None:
    conversation = ours.conversation
    for place, author in enumerate(("customer", "assistant"), start=100):
        Message.objects.create(
            conversation=conversation, place=place, author=author, text=f"{author} **{place}**",
            turn=f"t{place}" if author == "assistant" else "", created_at=timezone.now(),
        )  # fmt: skip
    shown = superuser.get(listing(Message)).content.decode()
    assert "customer **100**" in shown
    assert "assistant 101" in shown


def test_no_page_shows_a_stored_key(superuser: Client, ours: Corner) -> None:
    for row in ours.rows():
        for path in (listing(type(row)), page(row), page(row, "history")):
            body = superuser.get(path).content.decode()
            for secret in (SHOP_KEY, MODEL_KEY, ours.site.identity_secret):
                assert secret not in body, path


def test_forms_offer_and_accept_only_the_own_workspace(boss: Client, ours: Corner, theirs: Corner) -> None:
    for path in (listing(Site, "add"), listing(Team, "add"), listing(Agent, "add"), page(ours.source)):
        assert b"theirs" not in boss.get(path).content, path
    assert (
        boss.post(listing(Team, "add"), {"workspace": theirs.workspace.pk, "name": "Spies"}).status_code
        == 200
    )
    assert not Team.objects.filter(name="Spies").exists()
    stolen = {"site": theirs.site.pk, "base_url": "https://evil.example", "api_key": ""}
    assert boss.post(page(ours.source), stolen).status_code == 200
    assert ProfileSource.objects.get(pk=theirs.source.pk).base_url == "https://theirs.example"
    assert (
        boss.post(listing(Team, "add"), {"workspace": ours.workspace.pk, "name": "Returns"}).status_code
        == 302
    )


def test_pages_of_superusers_are_closed_to_an_admin_agent(boss: Client) -> None:
    item = outbox_item()
    for path in (listing(User), listing(User, "add"), listing(OutboxItem), page(item)):
        assert boss.get(path).status_code in (403, 404), path
    assert (
        boss.post(listing(OutboxItem), {"action": "retry", "_selected_action": [item.pk]}).status_code == 403
    )
    item.refresh_from_db()
    assert item.attempts == 3


def test_agents_without_the_role_and_deactivated_admins_stay_outside(ours: Corner) -> None:
    login = reverse("admin:login")
    assert logged_in(ours.agent.user).get(reverse("admin:index")).headers["Location"].startswith(login)
    was_admin = logged_in(ours.admin.user)
    Agent.objects.filter(pk=ours.admin.pk).update(active=False)
    assert was_admin.get(listing(Site)).status_code == 403


def test_an_agent_is_made_with_a_user_who_can_log_in(boss: Client, ours: Corner) -> None:
    form = {
        "workspace": ours.workspace.pk,
        "name": "Ana",
        "username": "ana",
        "role": "agent",
        "teams": [ours.team.pk],
    }
    weak = boss.post(listing(Agent, "add"), {**form, "password": "password"})
    assert weak.status_code == 200
    assert not User.objects.filter(username="ana").exists()
    assert boss.post(listing(Agent, "add"), {**form, "password": PASSWORD}).status_code == 302
    ana = Agent.objects.get(name="Ana")
    assert (ana.user.is_staff, list(ana.teams.all())) == (False, [ours.team])
    assert Client().login(username="ana", password=PASSWORD)
    taken = boss.post(listing(Agent, "add"), {**form, "username": "ANA", "password": PASSWORD})
    assert taken.status_code == 200
    assert Agent.objects.filter(name="Ana").count() == 1


def test_a_role_opens_and_closes_the_admin(boss: Client, ours: Corner) -> None:
    form = {"name": "Kim", "role": "admin", "teams": [], "active": "on", "new_password": ""}
    assert boss.post(page(ours.agent), form).status_code == 302
    assert User.objects.get(pk=ours.agent.user_id).is_staff is True
    boss.post(listing(Agent), {"action": "deactivate", "_selected_action": [ours.agent.pk, ours.admin.pk]})
    assert User.objects.get(pk=ours.agent.user_id).is_staff is False
    assert Agent.objects.get(pk=ours.agent.pk).active is False
    assert Agent.objects.get(pk=ours.admin.pk).active is True, "nobody locks themselves out"


def test_an_admin_agent_cannot_set_a_superusers_password(boss: Client, ours: Corner) -> None:
    User.objects.filter(pk=ours.agent.user_id).update(is_superuser=True)
    assert b"new_password" not in boss.get(page(ours.agent)).content
    form = {
        "name": "Kim",
        "role": "agent",
        "teams": [],
        "active": "on",
        "new_password": "another-long-phrase",
    }
    boss.post(page(ours.agent), form)
    assert User.objects.get(pk=ours.agent.user_id).check_password(PASSWORD)


def test_opening_hours_are_edited_as_rows(boss: Client, ours: Corner) -> None:
    form = {"name": "Ours", "timezone": "Asia/Shanghai"} | {f"hours_{part}": "" for part in range(14)}
    assert (
        boss.post(page(ours.workspace), {**form, "hours_0": "18:00", "hours_1": "09:00"}).status_code == 200
    )
    assert boss.post(page(ours.workspace), {**form, "hours_0": "18:00"}).status_code == 200
    assert boss.post(page(ours.workspace), {**form, "timezone": "Mars/Base"}).status_code == 200
    assert (
        boss.post(page(ours.workspace), {**form, "hours_0": "08:30", "hours_1": "18:00"}).status_code == 302
    )
    ours.workspace.refresh_from_db()
    assert ours.workspace.hours == ["08:30-18:00", "", "", "", "", "", ""]
    assert b'value="08:30"' in boss.get(page(ours.workspace)).content


def test_saving_a_site_bumps_its_version_and_keeps_what_the_form_does_not_show(
    boss: Client, ours: Corner
) -> None:
    secret = ours.site.identity_secret
    form = {**SITE_FORM, "workspace": ours.workspace.pk}
    assert boss.post(page(ours.site), form).status_code == 302
    site = Site.objects.get(pk=ours.site.pk)
    assert site.allowed_origins == ["https://shop.example", "http://localhost:8000"]
    assert site.suggestions_en == ["Where is my order?", "Can I return boots?"]
    assert (site.settings_version, site.identity_secret, site.assistant_enabled) == (2, secret, False)
    assert (site.answer_cache, site.speculation_tokens) == (AnswerCacheMode.EXACT, 30_000)
    for wrong in (
        {"answer_cache": "sometimes"},
        {"accent": "#ffee00"},
        {"allowed_origins": "shop.example"},
        {"suggestions_en": "a\nb\nc\nd"},
    ):
        assert boss.post(page(ours.site), form | wrong).status_code == 200, wrong
    assert Site.objects.get(pk=ours.site.pk).settings_version == 2


def test_the_snippet_stands_ready_to_copy(boss: Client, ours: Corner) -> None:
    body = boss.get(page(ours.site)).content.decode()
    assert f"http://testserver/widget.js&quot; data-site=&quot;{ours.site.pk}" in body.replace('"', "&quot;")


def test_rotating_shows_the_new_secret_exactly_once(boss: Client, ours: Corner, theirs: Corner) -> None:
    path = reverse("admin:accounts_site_change", args=(ours.site.pk,)).replace("change", "rotate-secret")
    old = ours.site.identity_secret
    asked = boss.get(path)
    assert asked.status_code == 200
    assert Site.objects.get(pk=ours.site.pk).identity_secret == old
    answer = boss.post(path)
    new = Site.objects.get(pk=ours.site.pk).identity_secret
    assert new != old
    assert answer.content.decode().count(new) == 1
    assert "no-store" in answer.headers["Cache-Control"]
    later = [boss.get(path), boss.get(page(ours.site)), boss.get(page(ours.site, "history"))]
    assert all(new not in response.content.decode() for response in later)
    assert new not in "".join(LogEntry.objects.values_list("change_message", flat=True))
    foreign = path.replace(ours.site.pk, theirs.site.pk)
    assert boss.post(foreign).status_code == 404
    assert Site.objects.get(pk=theirs.site.pk).identity_secret == theirs.site.identity_secret


def test_a_stored_key_is_kept_by_an_empty_input_and_never_shown(boss: Client, ours: Corner) -> None:
    form = {"site": ours.site.pk, "base_url": "https://ours.example/api/", "api_key": ""}
    assert boss.post(page(ours.source), form).status_code == 302
    kept = ProfileSource.objects.get(pk=ours.source.pk)
    assert (kept.base_url, kept.api_key) == ("https://ours.example/api", SHOP_KEY)
    assert boss.post(page(ours.source), {**form, "api_key": "sk-second"}).status_code == 302
    assert ProfileSource.objects.get(pk=ours.source.pk).api_key == "sk-second"
    invalid = boss.post(page(ours.source), {**form, "base_url": "ftp://x", "api_key": "sk-third"})
    pages = [
        boss.get(page(ours.source)),
        boss.get(page(ours.source, "history")),
        boss.get(listing(ProfileSource)),
        invalid,
    ]
    for response in pages:
        for secret in (SHOP_KEY, "sk-second", "sk-third"):
            assert secret not in response.content.decode()
    assert "sk-second" not in "".join(LogEntry.objects.values_list("change_message", flat=True))
    assert "sk-second" not in repr(kept)


def test_a_stored_key_does_not_follow_to_another_server(boss: Client, ours: Corner) -> None:
    form = {"site": ours.site.pk, "base_url": "https://evil.example", "api_key": ""}
    assert boss.post(page(ours.source), form).status_code == 200
    assert ProfileSource.objects.get(pk=ours.source.pk).base_url == "https://ours.example"
    assert boss.post(page(ours.source), {**form, "api_key": "sk-new"}).status_code == 302
    assert ProfileSource.objects.get(pk=ours.source.pk).api_key == "sk-new"


def test_a_transcript_reads_as_text_and_offers_no_editing(boss: Client, ours: Corner) -> None:
    body = boss.get(page(ours.conversation)).content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in body
    assert "<script>alert(1)" not in body
    assert "ours <b>Mia" not in body
    assert 'name="_save"' not in body
    assert boss.post(page(ours.conversation), {"status": "resolved"}).status_code == 403
    assert boss.post(page(ours.message), {"text": "x"}).status_code == 403
    ours.conversation.refresh_from_db()
    assert ours.conversation.status == "open"


def test_a_transcript_shows_answers_as_the_customer_saw_them(boss: Client, ours: Corner) -> None:
    for author in ("customer", "assistant"):
        Message.objects.create(
            conversation=ours.conversation,
            place=90 + len(author),
            author=author,
            text="It is **blue**.",
            created_at=timezone.now(),
        )
    body = boss.get(page(ours.conversation)).content.decode()
    assert '<p class="cs-message-text">It is **blue**.</p>' in body
    assert '<div class="cs-message-markup"><p>It is <strong>blue</strong>.</p></div>' in body


@pytest.mark.parametrize(("author", "shown"), [("customer", "It is **blue**."), ("assistant", "It is blue.")])
def test_a_last_line_reads_as_it_was_shown(boss: Client, ours: Corner, author: str, shown: str) -> None:
    Conversation.objects.update(last_line="It is **blue**.", last_author=author)
    for place in (reverse("admin:index"), listing(Conversation)):
        body = boss.get(place).content.decode()
        assert shown in body
        assert ("**blue**" in body) == ("**blue**" in shown)


def test_a_superuser_retries_an_outbox_item(superuser: Client) -> None:
    item = outbox_item()
    superuser.post(listing(OutboxItem), {"action": "retry", "_selected_action": [item.pk]})
    before = item.due_at
    item.refresh_from_db()
    assert item.attempts == 0
    assert item.due_at > before


def test_the_list_of_customers_costs_the_same_for_one_and_for_twenty(
    boss: Client, ours: Corner, django_assert_num_queries: Any
) -> None:
    with CaptureQueriesContext(connection) as one:
        boss.get(listing(Customer))
    for number in range(20):
        Customer.objects.create(site=ours.site, external_id=f"c{number}")
    with django_assert_num_queries(len(one)):
        boss.get(listing(Customer))


def test_the_log_in_and_every_page_bear_the_mark(boss: Client) -> None:
    for client, name in ((Client(), "admin:login"), (boss, "admin:index")):
        assert (
            'rel="icon" href="/static/css/dashboard-mark.svg"' in client.get(reverse(name)).content.decode()
        )
