"""The pages of model endpoints: keys go in and never come out, a test tells what is wrong, trouble is seen."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.models import Site
from apps.engine.types import Usage
from apps.llm import records, spend
from apps.llm.models import DailySpend, ModelEndpoint
from apps.llm.spec import EndpointSpec
from tests.db.admin_world import PASSWORD, Corner, corner, logged_in
from tests.fakes.upstream.faults import FAILING, Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.profile import Profile
from tests.fakes.upstream.script import Text

pytestmark = pytest.mark.django_db

KEY = "sk-model-never-show"
LISTED = "/admin/llm/modelendpoint/"
BUTTON = "llm_modelendpoint_test_connection"


@pytest.fixture
def ours() -> Corner:
    """With no endpoint and no spend but those of the test."""
    world = corner("ours")
    world.endpoint.delete()
    world.spend.delete()
    return world


@pytest.fixture
def endpoint(ours: Corner) -> ModelEndpoint:
    return ModelEndpoint.objects.create(
        site=ours.site, name="main", base_url="https://models.example/v1", model="m-1", api_key=KEY
    )


def form(endpoint: ModelEndpoint, **changes: Any) -> dict[str, Any]:
    fields = {
        "site": endpoint.site_id, "name": endpoint.name, "enabled": "on", "priority": 1, "provider": "chat_completions",
        "dialect": "auto", "base_url": endpoint.base_url, "api_key": "", "model": endpoint.model, "max_concurrent": 10,
        "max_output_tokens": 700, "price_in": "1", "price_out": "2", "extra_body": "{}", "_save": "Save",
    }  # fmt: skip
    return {**fields, **changes}


def change(endpoint: ModelEndpoint) -> str:
    return reverse("admin:llm_modelendpoint_change", args=(endpoint.pk,))


def version(endpoint: ModelEndpoint) -> int:
    endpoint.site.refresh_from_db()
    return int(endpoint.site.settings_version)


def test_the_key_is_kept_when_its_input_stays_empty_and_shown_nowhere(
    boss: Client, endpoint: ModelEndpoint
) -> None:
    before = version(endpoint)
    assert boss.post(change(endpoint), form(endpoint, model="m-2")).status_code == 302
    endpoint.refresh_from_db()
    assert (endpoint.model, endpoint.api_key) == ("m-2", KEY)
    assert version(endpoint) == before + 1
    assert KEY not in boss.get(change(endpoint)).content.decode()
    assert KEY not in boss.get(LISTED).content.decode()


def test_another_server_gets_no_stored_key(boss: Client, endpoint: ModelEndpoint) -> None:
    before = version(endpoint)
    elsewhere = form(endpoint, base_url="https://elsewhere.example/v1")
    answer = boss.post(change(endpoint), elsewhere)
    assert answer.status_code == 200
    assert "enter the key again" in answer.content.decode()
    endpoint.refresh_from_db()
    assert endpoint.base_url == "https://models.example/v1"
    assert version(endpoint) == before
    assert boss.post(change(endpoint), {**elsewhere, "api_key": "sk-new"}).status_code == 302
    endpoint.refresh_from_db()
    assert endpoint.api_key == "sk-new"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("base_url", "models.example"),
        ("base_url", "ftp://x/v1"),
        ("extra_body", '{"stream": false}'),
        ("extra_body", "[1]"),
    ],
)
def test_a_bad_value_is_refused(field: str, value: str, boss: Client, endpoint: ModelEndpoint) -> None:
    before = version(endpoint)
    assert boss.post(change(endpoint), form(endpoint, api_key="k", **{field: value})).status_code == 200
    assert version(endpoint) == before


def test_another_workspace_sees_nothing_of_it(endpoint: ModelEndpoint) -> None:
    stranger = logged_in(corner("theirs").admin.user)
    assert stranger.get(change(endpoint)).status_code == 404
    assert "m-1" not in stranger.get(LISTED).content.decode()


def test_deleting_bumps_the_version(boss: Client, endpoint: ModelEndpoint) -> None:
    before = version(endpoint)
    boss.post(reverse("admin:llm_modelendpoint_delete", args=(endpoint.pk,)), {"post": "yes"})
    assert not ModelEndpoint.objects.exists()
    assert version(endpoint) == before + 1


def test_a_refused_key_is_a_banner_on_the_entry_the_list_and_its_page_until_it_works(
    boss: Client, endpoint: ModelEndpoint
) -> None:
    endpoint.last_error_kind, endpoint.last_error_at = "auth", timezone.now()
    endpoint.save()
    pages = (reverse("admin:index"), LISTED, change(endpoint))
    for page in pages:
        shown = boss.get(page).content.decode()
        assert "main does not answer on ours shop." in shown, page
        assert "The server refuses the key." in shown, page
    stranger = logged_in(corner("theirs").admin.user)
    assert "main does not answer" not in stranger.get(reverse("admin:index")).content.decode()
    ModelEndpoint.objects.update(last_ok_at=timezone.now())
    for page in pages:
        assert "The server refuses the key." not in boss.get(page).content.decode(), page


def with_model_of_the_settings(settings: Settings, key: str) -> EndpointSpec:
    settings.ENVIRONMENT = dataclasses.replace(
        settings.ENVIRONMENT, llm_base_url="https://models.example/v1", llm_api_key=key, llm_model="m-1"
    )
    [spec] = records.default_specs()
    return spec


def test_a_refused_key_of_the_settings_is_a_banner_until_it_works_or_another_is_set(
    boss: Client, ours: Corner, settings: Settings
) -> None:
    def banner() -> list[str]:
        return [warning.title for warning in boss.get(reverse("admin:index")).context["warnings"]]

    wrong = with_model_of_the_settings(settings, "sk-wrong")
    assert banner() == []
    records.note_failure(wrong.id, "auth")
    shown = boss.get(reverse("admin:index")).content.decode()
    assert "The model of the settings does not answer." in shown
    assert "The server refuses the key." in shown
    assert "LLM_API_KEY" in shown
    assert "sk-wrong" not in shown
    right = with_model_of_the_settings(settings, "sk-right")
    assert banner() == []
    records.note_failure(right.id, "auth")
    assert banner() == ["The model of the settings does not answer."]
    records.note_success(right.id)
    assert banner() == []


def test_a_model_of_the_settings_that_no_site_asks_is_no_banner(
    boss: Client, ours: Corner, settings: Settings
) -> None:
    records.note_failure(with_model_of_the_settings(settings, "sk-wrong").id, "auth")
    ModelEndpoint.objects.create(site=ours.site, name="own", base_url="https://models.example/v1", model="m")
    assert boss.get(reverse("admin:index")).context["warnings"] == []


@pytest.fixture
def live(endpoint: ModelEndpoint, upstream: Upstream, settings: Settings) -> ModelEndpoint:
    settings.ENVIRONMENT = dataclasses.replace(settings.ENVIRONMENT, llm_ca_file=upstream.ca_file)
    upstream.always(Plan(script=Text("ready")))
    endpoint.base_url = upstream.base_url
    endpoint.save()
    return endpoint


def told_by_test(boss: Client, endpoint: ModelEndpoint, **changes: Any) -> str:
    answer = boss.post(change(endpoint), {**form(endpoint, **changes), BUTTON: "1"}, follow=True)
    assert answer.request["PATH_INFO"] == change(endpoint)
    return " ".join(str(message) for message in answer.context["messages"])


@pytest.mark.django_db(transaction=True)
def test_the_connection_test_asks_a_real_question(
    boss: Client, live: ModelEndpoint, upstream: Upstream
) -> None:
    assert "m-1 answers. First words after" in told_by_test(boss, live)
    live.refresh_from_db()
    assert live.last_ok_at is not None
    assert upstream.requests()[-1].path == "/v1/chat/completions"
    upstream.wait("connections_open", 0, exactly=True)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("unauthorized", "refuses the key"),
        ("unknown_model", "Check the model's name"),
        ("end_mid_stream", "in the middle"),
    ],
)
@pytest.mark.django_db(transaction=True)
def test_the_connection_test_says_what_is_wrong(
    name: str, words: str, boss: Client, live: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.always(FAILING[name])
    told = told_by_test(boss, live)
    assert told.count("m-1 did not answer.") == 1
    assert words in told


@pytest.mark.django_db(transaction=True)
def test_the_connection_test_uses_the_key_just_typed(
    boss: Client, live: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.set_profile(Profile(api_keys=("sk-right",)))
    assert "refuses the key" in told_by_test(boss, live)
    assert "answers" in told_by_test(boss, live, api_key="sk-right")
    live.refresh_from_db()
    assert not live.needs_admin


def test_spend_adds_up_to_a_row_a_day_that_can_only_be_read(
    ours: Corner, boss: Client, endpoint: ModelEndpoint
) -> None:
    ModelEndpoint.objects.update(price_in=2, price_out=10)
    for _ in range(3):
        spend.add_usage(ours.site.pk, endpoint.pk, Usage(1_000, 100))
    spend.add_usage(ours.site.pk, "", Usage(50, 5))
    row = DailySpend.objects.get()
    assert (row.prompt_tokens, row.completion_tokens) == (3_050, 305)
    assert float(row.cost) == pytest.approx(0.009)
    page = boss.get("/admin/llm/dailyspend/")
    assert page.status_code == 200
    assert "0.01" in page.content.decode()
    assert boss.get("/admin/llm/dailyspend/add/").status_code == 403


def test_the_cap_is_reached_by_cost_and_only_where_there_is_one(
    ours: Corner, endpoint: ModelEndpoint
) -> None:
    ModelEndpoint.objects.update(price_in=1000)
    spend.add_usage(ours.site.pk, endpoint.pk, Usage(10_000, 0))
    assert not spend.cap_reached(ours.site.pk)
    Site.objects.update(daily_spend_cap=10)
    assert spend.cap_reached(ours.site.pk)
    DailySpend.objects.update(day="2020-01-01")
    assert not spend.cap_reached(ours.site.pk)


def test_superusers_see_every_page_open(ours: Corner, endpoint: ModelEndpoint) -> None:
    root = logged_in(User.objects.create_superuser("root", password=PASSWORD))
    for address in (LISTED, f"{LISTED}add/", change(endpoint), "/admin/llm/dailyspend/"):
        assert root.get(address).status_code == 200
