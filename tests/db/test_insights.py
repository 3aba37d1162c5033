"""What was measured of turns: kept in batches, read by the workspace's agents alone, and for a month."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.insights.quantiles import Quantiles, of_gaps, of_values
from apps.insights.tasks import KEEP_DAYS, prune_turns
from apps.insights.words import MARK_NAMES, MARK_VALUES
from apps.stores.database import in_database
from apps.telemetry.waterfall import GAP_BOUNDS_MS, STAGES
from apps.turns.between.switchboard import Switchboard
from apps.turns.ledger import WAITING_ROWS, Ledger
from apps.turns.models import Turn
from chatsvc.environment import BASE_DIR
from tests.db.admin_world import Corner, corner, logged_in
from tests.support.metrics import counted_here

NO_GAPS = [0] * (len(GAP_BOUNDS_MS) + 1)
LATENCY = "/api/v1/insights/latency"


def measured(conversation: str, number: int, **fields: Any) -> Turn:
    stages = [[name, 0.0, 0.0] for name in STAGES]
    stages[STAGES.index("first_frame")] = ["first_frame", 40.0, 2.0]
    values = {
        "part": 1,
        "handle": number,
        "end": "finished",
        "stages": stages,
        "gaps": NO_GAPS,
        "ttft_ms": 40.0,
    }
    return Turn(conversation_id=conversation, turn=f"turn-{number}", **(values | fields))


def kept() -> list[tuple[str, float | None]]:
    return list(
        Turn.objects.filter(turn__startswith="turn-").order_by("turn").values_list("turn", "painted_ms")
    )


def dropped() -> float:
    return counted_here("chatsvc_dropped_total", queue="turn_records")


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(Switchboard("here"))


@pytest.mark.django_db(transaction=True)
async def test_records_are_written_together_and_a_deleted_conversation_costs_only_its_own(
    ledger: Ledger,
) -> None:
    ours: Corner = await in_database(corner, "ours")
    for number in (1, 2):
        ledger.keep(measured(ours.conversation.pk, number))
    ledger.keep(measured("deleted", 3))
    ledger.keep(measured(ours.conversation.pk, 1))
    await ledger.write()
    assert await in_database(kept) == [("turn-1", None), ("turn-2", None)]


@pytest.mark.django_db(transaction=True)
async def test_a_paint_is_kept_whether_its_record_waits_or_is_written(ledger: Ledger) -> None:
    ours: Corner = await in_database(corner, "ours")
    conversation = ours.conversation.pk
    ledger.keep(measured(conversation, 1))
    assert ledger.painted(conversation, 1, 300.0)
    await ledger.write()
    ledger.keep(measured(conversation, 2))
    await ledger.write()
    assert ledger.painted(conversation, 2, 200.0)
    assert ledger.painted(conversation, 2, 900.0)
    assert not ledger.painted(conversation, 7, 200.0)
    assert not ledger.painted("another", 1, 200.0)
    await ledger.write()
    assert await in_database(kept) == [("turn-1", 300.0), ("turn-2", 200.0)]


async def test_a_full_queue_drops_and_counts(ledger: Ledger) -> None:
    before = dropped()
    for number in range(WAITING_ROWS + 3):
        ledger.keep(measured("c", number))
    assert dropped() - before == 3


@pytest.fixture
def kim(ours: Corner) -> Client:
    return logged_in(ours.agent.user)


@pytest.mark.django_db
def test_an_agent_reads_the_turns_of_a_conversation_with_every_stage(ours: Corner, kim: Client) -> None:
    measured(ours.conversation.pk, 1, painted_ms=90.0, added_ms=4.5, gaps=[0, 0, 0, 4, *NO_GAPS[4:]]).save()
    address = f"/api/v1/conversations/{ours.conversation.pk}/turns/"
    row = kim.get(address).json()["results"][0]
    assert (row["turn"], row["painted_ms"], row["added_ms"], row["ttft_ms"]) == ("turn-1", 90.0, 4.5, 40.0)
    assert [stage["name"] for stage in row["stages"]] == list(STAGES)
    assert row["stages"][STAGES.index("painted")] == {"name": "painted", "start_ms": 42.0, "ms": 48.0}
    assert row["inter_token_ms"] == {"count": 4, "p50": 7.5, "p95": 9.8, "p99": 9.9}


@pytest.mark.django_db
def test_one_turn_and_twenty_cost_the_same(ours: Corner, kim: Client) -> None:
    address = f"/api/v1/conversations/{ours.conversation.pk}/turns/"
    costs = []
    for numbers in (range(1), range(1, 20)):
        Turn.objects.bulk_create(measured(ours.conversation.pk, number) for number in numbers)
        for path in (address, LATENCY):
            with CaptureQueriesContext(
                connection,
            ) as queries:
                assert kim.get(path).status_code == 200
            costs.append(len(queries))
    assert costs[:2] == costs[2:]


@pytest.mark.django_db
def test_nobody_else_reads_them(ours: Corner, theirs: Corner, kim: Client) -> None:
    address = f"/api/v1/conversations/{theirs.conversation.pk}/turns/"
    measured(theirs.conversation.pk, 1).save()
    Turn.objects.filter(conversation=ours.conversation).delete()
    assert kim.get(address).status_code == 404
    assert kim.get(LATENCY).json() == []
    assert Client().get(address).status_code == Client().get(LATENCY).status_code == 403


@pytest.mark.django_db
@pytest.mark.parametrize("hours", ["0", "721", "soon"])
def test_a_window_out_of_range_is_refused(kim: Client, hours: str) -> None:
    answer = kim.get(LATENCY, {"hours": hours})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert set(answer.json()["fields"]) == {"hours"}


@pytest.mark.django_db
def test_a_site_is_told_its_middle_and_its_tail(ours: Corner, kim: Client) -> None:
    Turn.objects.all().delete()
    for number in range(1, 101):
        measured(ours.conversation.pk, number, ttft_ms=float(number), painted_ms=number * 10.0).save()
    old = measured(ours.conversation.pk, 101, ttft_ms=9_000.0)
    old.save()
    Turn.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(hours=3))
    [site] = kim.get(LATENCY, {"hours": 2}).json()
    assert (site["site"], site["turns"], site["added"], site["inter_token"]) == (
        ours.site.pk,
        100,
        None,
        None,
    )
    assert site["ttft"] == {"count": 100, "p50": 50.0, "p95": 95.0, "p99": 99.0}
    assert site["painted"]["p95"] == 950.0


@pytest.mark.django_db
def test_records_are_kept_for_a_month(ours: Corner) -> None:
    for number, days in ((1, KEEP_DAYS + 1), (2, KEEP_DAYS - 1)):
        row = measured(ours.conversation.pk, number)
        row.save()
        Turn.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(days=days))
    assert prune_turns() == 1
    assert [turn for turn, _ in kept()] == ["turn-2"]


@pytest.mark.django_db
def test_the_admin_shows_the_bars_and_the_figures_of_the_own_sites_alone(
    ours: Corner, theirs: Corner
) -> None:
    row = measured(ours.conversation.pk, 1, painted_ms=90.0)
    row.save()
    browser = logged_in(ours.admin.user)
    listed = browser.get("/admin/turns/turn/").content.decode()
    page = browser.get(f"/admin/turns/turn/{row.pk}/change/").content.decode()
    assert ours.site.name in listed
    assert theirs.site.name not in listed
    assert "On the customer&#x27;s screen" in page
    assert page.count('class="cs-bar-row"') == len(STAGES)


@pytest.mark.django_db
def test_the_admin_says_the_marks_of_a_turn_in_the_readers_language(ours: Corner) -> None:
    marks = {"profile": "warm", "draft_saved_ms": "12.5", "rules": "late", "new_mark": "so"}
    row = measured(ours.conversation.pk, 1, marks=marks)
    row.save()
    address, browser = f"/admin/turns/turn/{row.pk}/change/", logged_in(ours.admin.user)
    english, chinese = (
        re.findall(
            r'class="cs-state">([^<]*)<', browser.get(address, HTTP_ACCEPT_LANGUAGE=language).content.decode()
        )
        for language in ("en", "zh-hans")
    )
    assert english == ["Saved by the draft, ms: 12.5", "new_mark: so", "Customer data: warm", "Rules: late"]
    assert chinese == ["因草稿节省的毫秒: 12.5", "new_mark: so", "顾客资料: 热", "规则: late"]


def test_the_admin_has_words_for_all_that_the_dashboard_has_words_for() -> None:
    words = json.loads((BASE_DIR / "static/js/dashboard/locale/en.json").read_text(encoding="utf-8"))
    assert MARK_NAMES.keys() == words["stage"].keys()
    assert MARK_VALUES.keys() == words["mark"].keys()


@pytest.mark.parametrize(
    ("values", "found"),
    [([], None), ([7.0], Quantiles(1, 7.0, 7.0, 7.0)), ([3.0, 1.0], Quantiles(2, 1.0, 3.0, 3.0))],
)
def test_quantiles_are_of_the_nearest_rank(values: list[float], found: Quantiles | None) -> None:
    assert of_values(values) == found


def test_gaps_longer_than_the_last_bound_count_as_it() -> None:
    assert of_gaps(NO_GAPS) is None
    assert of_gaps([*NO_GAPS[:-1], 5]) == Quantiles(5, 1_000.0, 1_000.0, 1_000.0)
