"""The agents' pages: who gets in, what a page may load, and how one gets out."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.accounts.agents import create_agent
from apps.accounts.models import Agent, Workspace

PASSWORD = "a-long-test-passphrase"

pytestmark = pytest.mark.django_db


@pytest.fixture
def kim() -> Agent:
    workspace = Workspace.objects.create(name="<b>Lantern</b>")
    return create_agent(workspace=workspace, username="kim", password=PASSWORD, name="Kim")


def test_the_dashboard_asks_for_a_log_in_and_comes_back(client: Client, kim: Agent) -> None:
    asked = client.get("/dashboard/")
    assert asked.status_code == 302
    assert asked["Location"] == "/login/?next=/dashboard/"
    entered = client.post(asked["Location"], {"username": "kim", "password": PASSWORD, "next": "/dashboard/"})
    assert entered["Location"] == "/dashboard/"
    assert client.get("/dashboard/").status_code == 200


@pytest.mark.parametrize("given", [("kim", "wrong"), ("nobody", PASSWORD), ("", "")])
def test_a_wrong_name_and_a_wrong_password_read_the_same(
    client: Client, kim: Agent, given: tuple[str, str]
) -> None:
    page = client.post("/login/", {"username": given[0], "password": given[1]}).content.decode()
    assert "The user name and password do not match. Check both and log in again." in page
    assert client.get("/dashboard/").status_code == 302


def test_log_in_never_leads_to_another_site(client: Client, kim: Agent) -> None:
    answer = client.post(
        "/login/", {"username": "kim", "password": PASSWORD, "next": "https://evil.example/"}
    )
    assert answer["Location"] == "/dashboard/"


def test_a_user_without_an_agent_is_told_what_to_do(client: Client) -> None:
    client.force_login(User.objects.create_user("<i>eve</i>"))
    page = client.get("/dashboard/")
    assert page.status_code == 403
    assert "You are logged in as &lt;i&gt;eve&lt;/i&gt;" in page.content.decode()
    assert "inbox-list" not in page.content.decode()


def test_a_deactivated_agent_does_not_get_in(client: Client, kim: Agent) -> None:
    client.force_login(kim.user)
    Agent.objects.filter(pk=kim.pk).update(active=False)
    assert client.get("/dashboard/").status_code == 403


def test_names_are_shown_as_text(client: Client, kim: Agent) -> None:
    client.force_login(kim.user)
    page = client.get("/dashboard/").content.decode()
    assert "<b>Lantern</b>" not in page
    assert 'data-workspace="&lt;b&gt;Lantern&lt;/b&gt;"' in page


@pytest.mark.parametrize("path", ["/dashboard/", "/login/"])
def test_the_page_loads_and_calls_its_own_origin_only(client: Client, kim: Agent, path: str) -> None:
    if path == "/dashboard/":
        client.force_login(kim.user)
    answer = client.get(path)
    policy = dict(part.split(" ", 1) for part in answer["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["style-src"] == "'self'"
    assert policy["connect-src"] == "'self' ws://testserver"
    assert policy["frame-ancestors"] == "'none'"
    assert "no-store" in answer["Cache-Control"]


def test_only_a_post_logs_out(client: Client, kim: Agent) -> None:
    client.force_login(kim.user)
    assert client.get("/logout/").status_code == 405
    assert client.get("/dashboard/").status_code == 200
    assert client.post("/logout/")["Location"] == "/login/"
    assert client.get("/dashboard/").status_code == 302


def test_a_log_in_without_the_form_s_token_is_refused(kim: Agent) -> None:
    client = Client(enforce_csrf_checks=True)
    assert client.post("/login/", {"username": "kim", "password": PASSWORD}).status_code == 403


def test_the_pages_speak_the_reader_s_language(client: Client, kim: Agent) -> None:
    assert '<html lang="en">' in client.get("/login/").content.decode()
    chinese = client.get("/login/", headers={"accept-language": "zh-CN,zh;q=0.9"}).content.decode()
    assert '<html lang="zh-Hans">' in chinese
    assert "用户名" in chinese
    client.post("/i18n/setlang/", {"language": "zh-hans", "next": "/login/"})
    assert "用户名" in client.get("/login/").content.decode()


def test_the_dashboard_costs_one_query_besides_the_session(
    client: Client, kim: Agent, django_assert_num_queries: object
) -> None:
    client.force_login(kim.user)
    with django_assert_num_queries(3):  # type: ignore[operator]  # session, user, agent
        client.get("/dashboard/")
