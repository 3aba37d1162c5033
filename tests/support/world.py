"""A workspace under test: its site, its people, and sockets that have said hello."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import jwt
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client as Browser

from apps.accounts.models import Agent, Site, Team, Workspace, bump
from apps.customers.identity import issue_visitor_token
from apps.customers.models import ProfileSource
from apps.knowledge import demo as articles
from apps.llm.models import ModelEndpoint
from apps.rulebook.models import Rule
from apps.stores.ids import new_id
from tests.fakes.shop.handle import Shop
from tests.fakes.upstream.handle import Upstream
from tests.support.client import Client, Frame, connected
from tests.support.processes import Web


@dataclass(slots=True)
class Open:
    """A customer's socket on its conversation."""

    client: Client
    welcome: Frame

    @property
    def conversation(self) -> str:
        return str(self.welcome["conversation"])

    async def say(self, text: str, message_id: str | None = None) -> str:
        """Sends and waits for the acknowledgement; the id."""
        message_id = message_id or new_id()
        await self.client.send(
            {"type": "message.send", "id": message_id, "conversation": self.conversation, "text": text}
        )
        await self.client.expect("ack", id=message_id)
        return message_id

    async def write(self, text: str, number: int = 1) -> None:
        """A draft that the server has taken up: frames of one socket are carried out in order."""
        await self.client.send(
            {"type": "draft", "conversation": self.conversation, "text": text, "number": number}
        )
        await self.client.send({"type": "ping"})
        await self.client.expect("pong")

    async def answer(self) -> Frame:
        """The durable message of the next assistant answer."""
        event = await self.client.expect(
            "event", kind="message", where=lambda f: f["message"]["author"] == "assistant"
        )
        message: Frame = event["message"]
        return message

    async def message(self, text: str, deadline_s: float = 20.0) -> Frame:
        """The message with this text, from the page of the welcome or as it comes."""
        shown: list[Frame] = [event.get("message") or {} for event in self.welcome["page"]["events"]]
        found = next((message for message in shown if message.get("text") == text), None)
        if found is None:
            event = await self.client.expect(
                "event", deadline_s=deadline_s, where=lambda f: f.get("message", {}).get("text") == text
            )
            found = event["message"]
        return found

    def shown(self, handle: int) -> str:
        """The text that the deltas of one live turn have painted."""
        return "".join(frame["text"] for frame in self.client.received("delta") if frame["handle"] == handle)

    def resumed(self) -> str:
        """The text of the turn that ran when the socket was welcomed, with what every delta since has painted."""
        text: str = self.welcome["live"]["text"]
        for delta in self.client.received("delta"):
            text = text[: delta["offset"]] + delta["text"]
        return text


class World:
    """One workspace of its own on the deployment's database; synchronous parts run in threads."""

    def __init__(self, **site: Any) -> None:
        self.workspace = Workspace.objects.create(name="Lantern")
        self.site = Site.objects.create(workspace=self.workspace, name="Lantern", **site)
        self.teams = {
            name: Team.objects.create(workspace=self.workspace, name=name) for name in ("Support", "Returns")
        }

    def model(self, upstream: Upstream, **fields: Any) -> None:
        """Answers come from this model server."""
        values = {"name": "fake", "base_url": upstream.base_url, "model": "fake-1", "api_key": "key"} | fields
        ModelEndpoint.objects.create(site=self.site, **values)
        bump(self.site, "settings_version")

    def shop(self, shop: Shop) -> None:
        ProfileSource.objects.create(site=self.site, base_url=shop.url, api_key=shop.key)

    def articles(self) -> None:
        articles.load(self.site)

    def visitor(self) -> str:
        return issue_visitor_token(self.site.pk)[0]

    def identity(self, subject: str, **claims: Any) -> str:
        """The token by which the site vouches for a customer."""
        values = {
            "sub": subject,
            "iss": self.site.pk,
            "exp": int(time.time()) + 600,
            "name": subject.title(),
        } | claims
        return jwt.encode(values, self.site.identity_secret, algorithm="HS256")

    def agent(self, name: str) -> str:
        """Makes an agent and logs in; the cookie header."""
        user = User.objects.create(username=f"{name}-{new_id()}")
        Agent.objects.create(workspace=self.workspace, user=user, name=name)
        browser = Browser()
        browser.force_login(user)
        return f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"

    @asynccontextmanager
    async def customer(
        self, web: Web, *, token: str = "", identity: str = "", **hello: Any
    ) -> AsyncIterator[Open]:
        """A customer's socket that was welcomed."""
        token = token or (self.visitor() if not identity else "")
        async with connected(
            f"{web.ws}/ws/customer", subprotocol=hello.pop("subprotocol", "chatsvc.v1.json")
        ) as client:
            await client.send({"type": "hello", "token": token, "identity": identity, "locale": "en"} | hello)
            yield Open(client, await client.expect("welcome"))

    @asynccontextmanager
    async def tabs(self, *webs: Web) -> AsyncIterator[list[Open]]:
        """One visitor's tabs, one on each of these processes."""
        token = self.visitor()
        async with AsyncExitStack() as stack:
            yield [await stack.enter_async_context(self.customer(web, token=token)) for web in webs]

    @asynccontextmanager
    async def desk(self, web: Web, cookie: str) -> AsyncIterator[Client]:
        """An agent's socket that was given its inbox."""
        async with connected(f"{web.ws}/ws/agent", origin=web.origin, cookie=cookie) as client:
            await client.send({"type": "hello"})
            await client.expect("inbox")
            yield client


@transaction.atomic
def make_world(
    *,
    model: Upstream | None = None,
    endpoint: Mapping[str, Any] | None = None,
    shop: Shop | None = None,
    articles: bool = False,
    rule: Mapping[str, Any] | None = None,
    **site: Any,
) -> World:
    """A new world, whole at once: a process that polled in between would answer from a site without its parts.

    `endpoint` has fields of the model's row, `rule` those of a rule that always holds, `site` those of the site.
    """
    world = World(**site)
    if model is not None:
        world.model(model, **(endpoint or {}))
    if shop is not None:
        world.shop(shop)
    if articles:
        world.articles()
    if rule is not None:
        Rule.objects.create(site=world.site, name="r", condition="true", **rule)
    return world


async def made(**parts: Any) -> World:
    """`make_world` in a thread of its own, which the tests that start processes have connections to spare for."""
    return await asyncio.to_thread(make_world, **parts)


async def act(client: Client, verb: str, conversation: str, **fields: Any) -> str:
    """Sends an action with a fresh id; the id."""
    action = new_id()
    await client.send({"type": verb, "id": action, "conversation": conversation, **fields})
    return action
