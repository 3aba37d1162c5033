"""Rules are checked when saved, announce themselves, and act in the resident set."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from apps.accounts.models import Site, Team, Workspace
from apps.engine.rules import Decision, RuleInput
from apps.engine.types import Facts, FactsState, Profile
from apps.rulebook import demo
from apps.rulebook.models import Rule
from apps.rulebook.resident import RuleResident, validate_bundle

pytestmark = pytest.mark.django_db


@pytest.fixture
def teams(site: Site) -> dict[str, Team]:
    return {name: Team.objects.create(workspace=site.workspace, name=name) for name in ("Support", "Returns")}


def version(site: Site) -> int:
    return Site.objects.get(pk=site.pk).rules_version


def asked(text: str, tier: str = "") -> RuleInput:
    profile = Profile("Mia", tier=tier) if tier else None
    facts = Facts(bool(tier), FactsState.WARM if tier else FactsState.NONE, profile)
    return RuleInput(text, "en", 1, facts, within_hours=True)


def rule(site: Site, **fields: Any) -> Rule:
    return Rule(**{"site": site, "name": "R", "condition": "true", "tag": "t"} | fields)


def test_saving_and_deleting_bump_the_version(site: Site) -> None:
    row = rule(site)
    row.save()
    assert version(site) == 2
    row.save()
    assert version(site) == 3
    row.delete()
    assert version(site) == 4


@pytest.mark.parametrize(
    ("fields", "field", "told"),
    [
        ({"condition": 'tier = "gold"'}, "condition", "write == to compare"),
        ({"condition": ""}, "condition", "blank"),
        ({"tag": ""}, "__all__", "something to do"),
    ],
)
def test_a_bad_rule_is_refused_with_a_message(site: Site, fields: Any, field: str, told: str) -> None:
    with pytest.raises(ValidationError) as refused:
        rule(site, **fields).full_clean()
    assert told in str(refused.value.message_dict[field])


def test_a_rule_takes_only_teams_of_its_own_workspace_and_only_to_hand_over(
    site: Site, teams: dict[str, Team]
) -> None:
    foreign = Team.objects.create(workspace=Workspace.objects.create(name="Other"), name="Returns")
    for fields, told in (
        ({"team": foreign, "handoff": True}, "another workspace"),
        ({"team": teams["Returns"]}, "only if the rule hands over"),
    ):
        with pytest.raises(ValidationError) as refused:
            rule(site, **fields).full_clean()
        assert told in str(refused.value.message_dict["team"])
    rule(site, team=teams["Returns"], handoff=True).full_clean()


def test_the_demos_rules_are_sound_and_act(site: Site, teams: dict[str, Team]) -> None:
    demo.load(site, teams)
    demo.load(site, teams)
    assert Rule.objects.count() == 3
    for row in Rule.objects.all():
        row.full_clean()
    assert validate_bundle(site.pk) == []
    resident = RuleResident()
    resident.refresh(site.pk, version(site))
    rules = resident.current(site.pk)
    gold = rules.decide(asked("I want a refund", "gold"))
    assert (gold.handoff, gold.team, gold.matched) == (True, "Returns", ("Gold customers' refunds",))
    assert rules.decide(asked("I want a refund", "standard")) == Decision()
    assert rules.decide(asked("My battery is swollen")).tags == ("safety",)


def test_a_resident_loads_enabled_rules_in_order_with_one_query(
    site: Site, teams: dict[str, Team], django_assert_num_queries: Any
) -> None:
    resident = RuleResident()
    assert (resident.loaded_version(site.pk), resident.current(site.pk).decide(asked("x"))) == (0, Decision())
    rule(site, name="second", position=2, tag="b").save()
    with django_assert_num_queries(1):
        resident.refresh(site.pk, 2)
    for number in range(20):
        rule(
            site,
            name=f"off {number}",
            enabled=number % 2 == 0,
            position=9,
            handoff=True,
            team=teams["Support"],
        ).save()
    rule(site, name="first", position=1, tag="a").save()
    with django_assert_num_queries(1):
        resident.refresh(site.pk, 3)
    decision = resident.current(site.pk).decide(asked("x"))
    assert decision.tags == ("a", "b", "t")
    assert len(decision.matched) == 12
    assert resident.loaded_version(site.pk) == 3
    resident.forget(site.pk)
    assert resident.loaded_version(site.pk) == 0


def test_a_resident_never_goes_back_to_an_older_version(site: Site) -> None:
    resident = RuleResident()
    resident.refresh(site.pk, 5)
    rule(site).save()
    resident.refresh(site.pk, 4)
    assert (resident.loaded_version(site.pk), resident.current(site.pk).decide(asked("x"))) == (5, Decision())


def test_a_stored_rule_that_cannot_be_asked_is_reported_and_stops_no_other(site: Site) -> None:
    rule(site, name="good").save()
    rule(site, name="bad", condition="tire == 1").save()  # past the form, as an import would
    rule(site, name="bad but off", condition="tire == 1", enabled=False).save()
    assert validate_bundle(site.pk) == ["bad: At character 1: no name is called tire; did you mean tier?"]
    resident = RuleResident()
    resident.refresh(site.pk, 1)
    decision = resident.current(site.pk).decide(asked("x"))
    assert (decision.matched, decision.failed) == (("good",), ("bad",))
