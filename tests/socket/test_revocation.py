"""What lets somebody in is taken away while they are connected, by whichever process: every process ends the line.

Nobody announces anything: the changes are made in the database, as any path makes them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Literal

import httpx
import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.utils import timezone

from apps.accounts.models import Agent, Site, Workspace, bump
from apps.accounts.sites import rotate_identity_secret
from tests.support.client import Client, Frame, connected
from tests.support.http_line import http_line
from tests.support.processes import Web
from tests.support.world import World, made

pytestmark = pytest.mark.usefixtures("orm")

Carrier = Literal["socket", "stream", "poll"]
CARRIERS: tuple[Carrier, ...] = ("socket", "stream", "poll")


@asynccontextmanager
async def customer(
    web: Web, carrier: Carrier, *, origin: str = "", **credentials: str
) -> AsyncIterator[Client]:
    async with _opened(web, "customer", carrier, _hello(**credentials), origin=origin) as client:
        await client.expect("welcome")
        yield client


def _hello(**credentials: str) -> Frame:
    return {"type": "hello", "locale": "en"} | credentials


@asynccontextmanager
async def desk(web: Web, carrier: Carrier, cookie: str) -> AsyncIterator[Client]:
    async with _opened(web, "agent", carrier, {"type": "hello"}, cookie) as client:
        await client.expect("inbox")
        yield client


@asynccontextmanager
async def _opened(
    web: Web, kind: str, carrier: Carrier, hello: Frame, cookie: str = "", origin: str = ""
) -> AsyncIterator[Client]:
    origin = origin or web.origin
    if carrier == "socket":
        async with connected(f"{web.ws}/ws/{kind}", origin=origin, cookie=cookie or None) as client:
            await client.send(hello)
            yield client
        return
    headers = {"Origin": origin, **({"Cookie": cookie} if cookie else {})}
    async with http_line(web.url, kind, carrier, headers=headers, hello=hello) as line:
        yield line


async def ended(*clients: Client) -> list[tuple[int, str | None]]:
    """The close codes, and what the refusal before the close said."""
    closes = await asyncio.gather(*(client.closed() for client in clients))
    return [
        (code, client.received("refused")[-1]["code"])
        for client, (code, _) in zip(clients, closes, strict=True)
    ]


def log_out(world: World, web: Web, cookie: str) -> None:
    """As the button does, at one of the processes."""
    with httpx.Client(base_url=web.url, headers={"Cookie": cookie}, timeout=20) as browser:
        token = browser.get("/dashboard/").cookies["csrftoken"]
        browser.headers["Cookie"] = f"{cookie}; csrftoken={token}"
        answer = browser.post("/logout/", data={"csrfmiddlewaretoken": token})
        assert answer.status_code == 302


def end_session(world: World, web: Web, cookie: str) -> None:
    Session.objects.filter(pk=cookie.partition("=")[2]).update(expire_date=timezone.now())


def deactivate(world: World, web: Web, cookie: str) -> None:
    Agent.objects.filter(workspace=world.workspace).update(active=False)


def lock_user(world: World, web: Web, cookie: str) -> None:
    User.objects.filter(agent__workspace=world.workspace).update(is_active=False)


def new_password(world: World, web: Web, cookie: str) -> None:
    user = User.objects.get(agent__workspace=world.workspace)
    user.set_password("another-long-passphrase")
    user.save()


def move_away(world: World, web: Web, cookie: str) -> None:
    elsewhere = Workspace.objects.create(name="Elsewhere")
    Agent.objects.filter(workspace=world.workspace).update(workspace=elsewhere)


@pytest.mark.parametrize("end", [log_out, end_session, deactivate, lock_user, new_password, move_away])
async def test_an_agents_lines_end_with_what_made_them_one(
    web_pair: tuple[Web, Web], end: Callable[[World, Web, str], None]
) -> None:
    world = await made()
    cookie = await asyncio.to_thread(world.agent, "Kim")
    async with (
        desk(web_pair[0], "socket", cookie) as here,
        desk(web_pair[1], "stream", cookie) as elsewhere,
        desk(web_pair[1], "poll", cookie) as polling,
    ):
        await asyncio.to_thread(end, world, web_pair[0], cookie)
        assert await ended(here, elsewhere, polling) == [(4401, "bad_token")] * 3


async def test_one_agents_end_is_nobody_elses(web_pair: tuple[Web, Web]) -> None:
    world = await made()
    kim, ana = [await asyncio.to_thread(world.agent, name) for name in ("Kim", "Ana")]
    async with world.desk(web_pair[0], kim) as one, world.desk(web_pair[1], ana) as two:
        await asyncio.to_thread(lambda: Agent.objects.filter(name="Kim").update(active=False))
        assert await ended(one) == [(4401, "bad_token")]
        presence = await two.expect(
            "presence", where=lambda f: [agent["name"] for agent in f["agents"]] == ["Ana"]
        )
        await two.send({"type": "ping"})
        await two.expect("pong")
    assert presence["agents"][0]["online"] is True


async def test_another_team_role_or_name_is_shown_to_the_colleagues_who_are_connected(
    web_pair: tuple[Web, Web],
) -> None:
    world = await made()
    kim, ana = [await asyncio.to_thread(world.agent, name) for name in ("Kim", "Ana")]

    def change() -> None:
        agent = Agent.objects.get(workspace=world.workspace, name="Kim")
        agent.name, agent.role = "Kimberly", Agent.Role.ADMIN
        agent.save()
        agent.teams.set([world.teams["Returns"]])

    async with (
        world.customer(web_pair[1]) as line,
        world.desk(web_pair[0], kim) as one,
        world.desk(web_pair[1], ana) as two,
    ):
        for web, colleague in zip(web_pair, (one, two), strict=True):
            await _outlive_a_look(web, colleague)
            await _outlive_a_look(web, colleague)  # which began after the first had ended
        await asyncio.to_thread(change)
        for colleague in (one, two):
            await colleague.expect(
                "presence",
                where=lambda f: (
                    {agent["name"]: agent["teams"] for agent in f["agents"] if agent.get("teams")}
                    == {"Kimberly": ["Returns"]}
                ),
            )
        await one.send({"type": "conversation.take", "id": "t", "conversation": line.conversation})
        owner = await line.client.expect("event", kind="owner")
    assert owner["owner"]["name"] == "Kimberly"


@pytest.mark.parametrize("carrier", CARRIERS)
async def test_a_rotated_secret_ends_the_lines_of_those_it_vouched_for(
    web_pair: tuple[Web, Web], carrier: Carrier
) -> None:
    world = await made()
    mia = world.identity("mia")
    async with (
        customer(web_pair[0], carrier, identity=mia) as here,
        customer(web_pair[1], carrier, identity=mia) as elsewhere,
        customer(web_pair[0], carrier, token=world.visitor()) as visitor,
    ):
        await asyncio.to_thread(rotate_identity_secret, world.site)
        assert await ended(here, elsewhere) == [(4401, "bad_token")] * 2
        await asyncio.to_thread(world.site.refresh_from_db)
        # One of the new secret stays, however soon it comes; a visitor was never vouched for.
        async with customer(web_pair[1], carrier, identity=world.identity("mia")) as again:
            await _outlive_a_look(web_pair[1], again)
        await _outlive_a_look(web_pair[0], visitor)


@pytest.mark.parametrize("carrier", CARRIERS)
async def test_an_origin_off_the_list_ends_the_lines_of_its_pages(
    web_pair: tuple[Web, Web], carrier: Carrier
) -> None:
    world = await made()
    shop, blog = "https://shop.example", "https://blog.example"

    def allow(*origins: str) -> None:
        Site.objects.filter(pk=world.site.pk).update(allowed_origins=list(origins))
        bump(world.site, "settings_version")

    def of(web: Web, origin: str = "") -> AbstractAsyncContextManager[Client]:
        return customer(web, carrier, origin=origin, token=world.visitor())

    await asyncio.to_thread(allow, shop, blog)
    framed = {"token": world.visitor(), "framed_by": shop}
    async with (
        of(web_pair[0], shop) as here,
        of(web_pair[1], shop) as elsewhere,
        customer(web_pair[0], carrier, **framed) as frame,
        of(web_pair[1], blog) as another,
        of(web_pair[1]) as our_own,
    ):
        await asyncio.to_thread(allow, blog)
        assert await ended(here, elsewhere, frame) == [(4401, "bad_token")] * 3
        await _outlive_a_look(web_pair[1], another, our_own)
    async with (
        _opened(web_pair[0], "customer", carrier, _hello(token=world.visitor()), origin=shop) as again,
        _opened(web_pair[0], "customer", carrier, _hello(**framed)) as framed_again,
    ):
        assert await ended(again, framed_again) == [(4403, "not_allowed")] * 2


async def test_any_other_change_of_the_site_ends_nobodys_line(web: Web) -> None:
    world = await made()

    def edit() -> None:
        Site.objects.filter(pk=world.site.pk).update(assistant_name="Lumi", settings_version=7)

    async with customer(web, "socket", identity=world.identity("mia")) as line:
        await asyncio.to_thread(edit)
        await _outlive_a_look(web, line)


@pytest.mark.parametrize("carrier", CARRIERS)
async def test_a_deleted_sites_visitors_are_told_to_go(web: Web, carrier: Carrier) -> None:
    world = await made()
    async with customer(web, carrier, token=world.visitor()) as line:
        await asyncio.to_thread(world.site.delete)
        assert await ended(line) == [(4401, "bad_token")]


@pytest.mark.parametrize("carrier", CARRIERS)
async def test_a_token_that_runs_out_ends_the_line(web: Web, carrier: Carrier) -> None:
    world = await made()
    nearly_over = world.identity("ada", exp=int(time.time()) - 8)  # clocks may differ by ten seconds
    async with customer(web, carrier, identity=nearly_over) as line:
        assert await line.closed() == (4401, "token expired")
        assert line.received("refused")[-1]["message"] == "expired"


async def _outlive_a_look(web: Web, *clients: Client) -> None:
    """Another site's customer ends by a later change: whoever was to end by an earlier one has ended."""
    other = await made()
    async with customer(web, "socket", identity=other.identity("canary")) as canary:
        await asyncio.to_thread(rotate_identity_secret, other.site)
        assert await ended(canary) == [(4401, "bad_token")]
    for client in clients:
        await client.send({"type": "ping"})
        await client.expect("pong")
