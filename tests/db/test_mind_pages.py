"""The admin's pages of articles and rules, as an admin agent of one workspace uses them."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.accounts.models import Site
from apps.knowledge import demo as demo_articles
from apps.knowledge.models import Article
from apps.rulebook.models import Rule
from tests.db.admin_world import Corner, corner, logged_in

pytestmark = pytest.mark.django_db


def rules_version(site: Site) -> int:
    return Site.objects.get(pk=site.pk).rules_version


def url(model: str, name: str, *args: Any) -> str:
    app = {"article": "knowledge", "rule": "rulebook"}[model]
    return reverse(f"admin:{app}_{model}_{name}", args=args)


def rule_form(site: Site, **changes: Any) -> dict[str, Any]:
    fields = {"site": site.pk, "name": "Refunds", "position": 10, "enabled": "on"}
    return fields | {"condition": 'tier == "gold"', "tag": "gold", "handoff": ""} | changes


def article_form(site: Site, **changes: Any) -> dict[str, Any]:
    fields = {
        "site": site.pk,
        "locale": "en",
        "title": "Care",
        "slug": "care",
        "body": "By hand.",
        "published": "on",
    }
    return fields | changes


def test_a_rule_saved_in_the_form_acts_and_bumps_the_version(boss: Client, ours: Corner) -> None:
    before = rules_version(ours.site)
    answer = boss.post(url("rule", "add"), rule_form(ours.site, handoff="on", team=ours.team.pk))
    assert answer.status_code == 302
    assert Rule.objects.get(name="Refunds").team == ours.team
    assert rules_version(ours.site) == before + 1
    sample = {"site": ours.site.pk, "text": "hello", "locale": "en", "tier": "gold", "turn_number": "1"}
    tried = boss.get(reverse("admin:rulebook_rule_try_rules"), sample)
    assert "Refunds" in tried.content.decode()
    assert tried.context["decision"].team == ours.team.name


def test_a_condition_that_cannot_be_read_is_refused_in_the_form(boss: Client, ours: Corner) -> None:
    before = rules_version(ours.site)
    answer = boss.post(url("rule", "add"), rule_form(ours.site, condition='tier = "gold"'))
    assert answer.status_code == 200
    assert "At character 6: write == to compare" in answer.content.decode()
    assert not Rule.objects.filter(name="Refunds").exists()
    assert rules_version(ours.site) == before


def test_rules_deleted_in_bulk_bump_the_version(boss: Client, ours: Corner) -> None:
    before = rules_version(ours.site)
    chosen = {"action": "delete_selected", "_selected_action": [ours.rule.pk], "post": "yes"}
    assert boss.post(url("rule", "changelist"), chosen).status_code == 302
    assert not Rule.objects.exists()
    assert rules_version(ours.site) == before + 1


def test_an_article_saved_in_the_form_waits_for_the_worker(boss: Client, ours: Corner) -> None:
    assert boss.post(url("article", "add"), article_form(ours.site)).status_code == 302
    article = Article.objects.get(slug="care")
    assert (article.revision, article.ingested_revision) == (1, 0)
    page = boss.get(url("article", "change", article.pk)).content.decode()
    assert "Waiting for the worker" in page
    assert "<p>By hand.</p>" in page
    changed = article_form(ours.site, body="<script>alert(1)</script> [x](javascript:alert(1))")
    assert boss.post(url("article", "change", article.pk), changed).status_code == 302
    page = boss.get(url("article", "change", article.pk)).content.decode()
    assert "<script>alert(1)" not in page
    assert 'href="javascript' not in page


def test_the_search_box_shows_what_the_assistant_would_find(boss: Client, ours: Corner) -> None:
    demo_articles.load(ours.site)
    search = reverse("admin:knowledge_article_try_search")
    asked = {"site": ours.site.pk, "question": "Can I return worn boots?"}
    page = boss.get(search, asked).content.decode()
    assert "Boots you have worn" in page
    assert "It would answer from here" in page
    page = boss.get(search, asked | {"question": "Do you sell kayaks?"}).content.decode()
    assert "does not know" in page


@pytest.mark.parametrize("model", ["article", "rule"])
def test_nobody_reaches_another_workspace(boss: Client, ours: Corner, model: str) -> None:
    theirs = corner("theirs")
    row: Article | Rule
    if model == "article":
        row, form = theirs.article, article_form(theirs.site)
        tried, field = "admin:knowledge_article_try_search", "question"
    else:
        row, form = theirs.rule, rule_form(theirs.site)
        tried, field = "admin:rulebook_rule_try_rules", "text"
    assert str(row) not in boss.get(url(model, "changelist")).content.decode()
    assert boss.get(url(model, "change", row.pk)).status_code == 404
    assert boss.post(url(model, "add"), form).status_code == 200
    assert type(row).objects.filter(site=theirs.site).count() == 1
    answer = boss.get(reverse(tried), {"site": theirs.site.pk, field: "Secret"})
    assert "Select a valid choice" in answer.content.decode()
    for agent in (ours.agent, theirs.agent):
        assert logged_in(agent.user).get(reverse(tried)).status_code == 302


@pytest.mark.parametrize("model", ["article", "rule"])
def test_the_list_costs_the_same_for_one_and_for_twenty(boss: Client, ours: Corner, model: str) -> None:
    def add(number: int) -> None:
        if model == "article":
            Article.objects.create(site=ours.site, slug=f"a{number}", title="A", body="x")
        else:
            Rule.objects.create(
                site=ours.site, name=f"R{number}", condition="true", handoff=True, team=ours.team
            )

    add(0)
    boss.get(url(model, "changelist"))
    with CaptureQueriesContext(connection) as one:
        boss.get(url(model, "changelist"))
    for number in range(1, 20):
        add(number)
    with CaptureQueriesContext(connection) as twenty:
        boss.get(url(model, "changelist"))
    assert len(one) == len(twenty)
