"""REST: the widget's two questions, the agents' reading, health, and one form for every error."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.conversations.models import Conversation, Message
from apps.customers.identity import identify
from apps.customers.models import Customer
from tests.db.admin_world import Corner, corner, logged_in

pytestmark = pytest.mark.django_db

CONFIG = "/api/v1/widget/config"
SESSION = "/api/v1/widget/session"
LIST = "/api/v1/conversations/"


@pytest.fixture
def kim(ours: Corner) -> Client:
    return logged_in(ours.agent.user)


def ask_session(body: dict[str, Any]) -> Any:
    return Client(enforce_csrf_checks=True).post(SESSION, body, content_type="application/json")


def test_a_visitor_gets_a_token_and_stays_the_same_visitor(ours: Corner) -> None:
    first = ask_session({"site": ours.site.pk})
    assert (first.status_code, first.headers["Cache-Control"]) == (200, "no-store")
    again = ask_session({"site": ours.site.pk, "token": first.json()["token"]})
    assert again.json()["customer"] == first.json()["customer"]
    assert identify(again.json()["token"], "").customer_id == first.json()["customer"]
    left_days = again.json()["expires_at"] / 1000 - timezone.now().timestamp()
    assert 29 * 86400 < left_days <= 30 * 86400


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [({"site": "nobody"}, 404, "not_found"), ({}, 400, "invalid"), ({"site": "x" * 21}, 400, "invalid")],
)
def test_a_refused_session_has_the_one_error_form(body: dict[str, Any], status: int, code: str) -> None:
    answer = ask_session(body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert set(answer.json()) == ({"code", "message", "fields"} if status == 400 else {"code", "message"})


def test_a_body_that_is_no_json_has_the_one_error_form() -> None:
    answer = Client().post(SESSION, "{", content_type="application/json")
    assert (answer.status_code, set(answer.json())) == (400, {"code", "message"})


def test_the_config_judges_the_asking_origin(ours: Corner) -> None:
    ours.site.allowed_origins = ["https://shop.example", "http://testserver"]
    ours.site.save()
    answers = {
        origin: Client().get(CONFIG, {"site": ours.site.pk}, headers=headers)
        for origin, headers in (
            ("https://shop.example", {"Origin": "https://shop.example"}),
            ("https://evil.example", {"Origin": "https://evil.example"}),
            ("http://testserver", {}),
        )
    }
    allowed = {origin: answer.json()["allowed"] for origin, answer in answers.items()}
    assert allowed == {"https://shop.example": True, "https://evil.example": False, "http://testserver": True}
    answer = answers["https://evil.example"]
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert (answer.json()["origin"], answer.json()["accent"]) == ("https://evil.example", "#2f5bea")
    assert ours.site.identity_secret not in answer.content.decode()
    unknown = Client().get(CONFIG, {"site": "nobody"})
    assert (unknown.status_code, unknown.headers["Access-Control-Allow-Origin"]) == (404, "*")
    assert Client().get(CONFIG, {"site": "\x00"}).status_code == 404


def test_agents_read_their_own_workspace_only(kim: Client, ours: Corner) -> None:
    theirs = corner("theirs")
    rows = kim.get(LIST).json()["results"]
    assert [row["id"] for row in rows] == [ours.conversation.pk]
    assert rows[0]["verified"] is True
    messages = kim.get(f"{LIST}{ours.conversation.pk}/messages/").json()["results"]
    assert [message["text"] for message in messages] == [ours.message.text]
    foreign = kim.get(f"{LIST}{theirs.conversation.pk}/messages/")
    assert (foreign.status_code, foreign.json()["code"]) == (404, "not_found")
    assert kim.get(LIST, {"status": "resolved"}).json()["results"] == []
    assert kim.get(LIST, {"status": "odd"}).json()["fields"] == {"status": ["open or resolved"]}
    assert kim.post(LIST, {}).status_code == 405


def test_strangers_and_deactivated_agents_read_nothing(kim: Client, ours: Corner) -> None:
    assert Client().get(LIST).status_code == 403
    ours.agent.active = False
    ours.agent.save()
    answer = kim.get(LIST)
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")


def answered(conversation: Conversation, place: int) -> None:
    Message.objects.create(
        conversation=conversation, place=place, author="assistant", text="x", created_at=timezone.now()
    )


def test_lists_cost_the_same_for_one_row_and_for_twenty(
    kim: Client, ours: Corner, django_assert_num_queries: Any
) -> None:
    paths = (LIST, f"{LIST}{ours.conversation.pk}/messages/")
    costs = []
    for path in paths:
        with CaptureQueriesContext(connection) as queries:
            kim.get(path)
        costs.append(len(queries))
    for number in range(2, 21):
        customer = Customer.objects.create(site=ours.site, external_id=f"c{number}")
        Conversation.objects.create(
            workspace=ours.workspace, site=ours.site, customer=customer, last_seq=1, team=ours.team
        )
        answered(ours.conversation, number)
    for path, cost in zip(paths, costs, strict=True):
        with django_assert_num_queries(cost):
            assert len(kim.get(path).json()["results"]) == 20


def test_cursor_pages_walk_through_everything_once(kim: Client, ours: Corner) -> None:
    for number in range(2, 8):
        answered(ours.conversation, number)
    places, path = [], f"{LIST}{ours.conversation.pk}/messages/?limit=3"
    while path:
        page = kim.get(path).json()
        places += [row["place"] for row in page["results"]]
        path = page["next"]
    assert places == list(range(1, 8))


def test_an_unknown_address_of_the_api_has_the_one_error_form() -> None:
    answer = Client().post("/api/v1/nothing/here")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_the_schema_names_every_path() -> None:
    schema = Client().get("/api/v1/schema/", {"format": "json"}).json()
    assert set(schema["paths"]) == {
        "/api/v1/widget/session",
        "/api/v1/widget/config",
        "/api/v1/conversations/",
        "/api/v1/conversations/{conversation}/messages/",
        "/api/v1/conversations/{conversation}/turns/",
        "/api/v1/insights/latency",
    }


async def test_alive_says_nothing_of_the_stores() -> None:
    answer = await AsyncClient().get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("address", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("10.1.2.3", {}, 200),
        ("8.8.8.8", {}, 403),
        ("127.0.0.1", {"X-Forwarded-For": "8.8.8.8"}, 403),
        ("", {}, 403),
    ],
)
def test_metrics_are_for_near_collectors(address: str, headers: dict[str, str], status: int) -> None:
    answer = Client().get("/metrics", headers=headers, REMOTE_ADDR=address)
    assert answer.status_code == status
