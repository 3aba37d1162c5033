"""The two paths compared against, each as a competent team writes it with the same stack, models and data.

Path (a) *traditional*: a view. Each message is a new HTTP request that authenticates, saves, reads the profile from
the shop, loads the site's rules, searches the knowledge, reassembles the history, opens a connection to the model and
streams the answer as server-sent events.

Path (b) *modern*: a Channels consumer. One authenticated socket, one HTTP client with keep-alive for the process,
rules compiled once, tokens streamed as frames; the profile, the search and the history are still read in the turn.

Served by daphne: `daphne bench.turn.rivals:application`. Both use the product's prompt texts, in the order usual for
retrieval: instructions, customer and articles in the system message, then the history.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncIterator
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsvc.settings")

from asgiref.sync import sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

import httpx  # noqa: E402 - the imports below need the apps loaded
from django.conf import settings  # noqa: E402
from django.http import HttpRequest, JsonResponse, StreamingHttpResponse  # noqa: E402
from django.urls import path  # noqa: E402
from django.utils import timezone  # noqa: E402
from django.views.decorators.csrf import csrf_exempt  # noqa: E402

from apps.conversations.models import Conversation, Message  # noqa: E402
from apps.customers.identity import BadToken, Identified, identify  # noqa: E402
from apps.customers.models import Customer, ProfileSource  # noqa: E402
from apps.engine.prompt import policy_message  # noqa: E402
from apps.engine.rules import RuleInput  # noqa: E402
from apps.engine.types import Assistant, Facts, FactsState, Passage, Profile  # noqa: E402
from apps.knowledge.resident import KnowledgeResident  # noqa: E402
from apps.llm.models import ModelEndpoint  # noqa: E402
from apps.rulebook.resident import RuleResident  # noqa: E402

settings.ROOT_URLCONF = "bench.turn.rivals"

_knowledge = KnowledgeResident()
_compiled = RuleResident()
_kept_client: list[httpx.AsyncClient] = []

Chat = list[dict[str, str]]


def _who(credentials: dict[str, str]) -> Identified:
    return identify(credentials.get("token", ""), credentials.get("identity", ""))


def _open(who: Identified) -> Conversation:
    customer = Customer.objects.select_related("site").get(pk=who.customer_id)
    found = Conversation.objects.filter(customer=customer, last_seq__gt=0).first()
    return found or Conversation.objects.create(
        workspace_id=customer.site.workspace_id, site=customer.site, customer=customer, last_seq=1
    )


def _save(conversation: Conversation, author: str, text: str) -> None:
    place = Message.objects.filter(conversation=conversation).count() + 1
    Message.objects.create(
        conversation=conversation, place=place, author=author, text=text, created_at=timezone.now()
    )
    Conversation.objects.filter(pk=conversation.pk).update(last_line=text[:160], last_at=timezone.now())


def _history(conversation: Conversation) -> Chat:
    roles = {"customer": "user", "assistant": "assistant", "agent": "assistant"}
    rows = Message.objects.filter(conversation=conversation).order_by("place").values_list("author", "text")
    return [{"role": roles[author], "content": text} for author, text in rows]


def _endpoint(site: str) -> ModelEndpoint:
    return ModelEndpoint.objects.filter(site_id=site, enabled=True).order_by("priority")[0]


async def _profile(client: httpx.AsyncClient, who: Identified) -> dict[str, Any]:
    if not who.verified:
        return {}
    source, external = await sync_to_async(_shop)(who)
    headers = {"Authorization": f"Bearer {source.api_key}"}
    person = await client.get(f"{source.base_url}/customers/{external}", headers=headers)
    orders = await client.get(f"{source.base_url}/customers/{external}/orders", headers=headers)
    return {**person.json(), **orders.json()}


def _shop(who: Identified) -> tuple[ProfileSource, str]:
    external = Customer.objects.values_list("external_id", flat=True).get(pk=who.customer_id)
    return ProfileSource.objects.get(site_id=who.site_id), external


async def _search(site: str, question: str) -> tuple[Passage, ...]:
    if not _knowledge.loaded_version(site):
        await sync_to_async(_knowledge.refresh)(site, 1)
    return (await _knowledge.search(site, question, "en")).passages


def _decide(rules: RuleResident, who: Identified, question: str, profile: dict[str, Any]) -> None:
    known = None
    if profile:
        known = Profile(profile["name"], profile["email"], profile["tier"], profile["attributes"])
    facts = Facts(verified=who.verified, state=FactsState.COLD, profile=known)
    rules.current(who.site_id).decide(RuleInput(question, "en", 1, facts, within_hours=True))


def _messages(
    site: tuple[str, str, str], profile: dict[str, Any], passages: tuple[Passage, ...], said: Chat
) -> Chat:
    policy = policy_message(Assistant(*site)).content
    articles = "\n\n".join(f"# {passage.title}\n{passage.text}" for passage in passages)
    system = f"{policy}\n\nCustomer: {json.dumps(profile)}\n\nArticles:\n{articles}"
    return [{"role": "system", "content": system}, *said]


def _site(who: Identified) -> tuple[str, str, str]:
    customer = Customer.objects.select_related("site").get(pk=who.customer_id)
    return customer.site.assistant_name, customer.site.name, customer.site.instructions


async def _tokens(client: httpx.AsyncClient, endpoint: ModelEndpoint, messages: Chat) -> AsyncIterator[str]:
    body = {"model": endpoint.model, "messages": messages, "stream": True}
    headers = {"Authorization": f"Bearer {endpoint.api_key}"}
    async with client.stream(
        "POST", f"{endpoint.base_url}/chat/completions", json=body, headers=headers
    ) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    if text := choice["delta"].get("content"):
                        yield text


def _new_client() -> httpx.AsyncClient:
    return httpx.AsyncClient(verify=settings.ENVIRONMENT.llm_ca_file or True, timeout=60)


@csrf_exempt
async def traditional(request: HttpRequest) -> StreamingHttpResponse | JsonResponse:
    asked = json.loads(request.body)
    try:
        who = await sync_to_async(_who)(json.loads(request.headers["Authorization"].removeprefix("Bearer ")))
    except BadToken:
        return JsonResponse({"error": "log in again"}, status=401)
    conversation = await sync_to_async(_open)(who)
    await sync_to_async(_save)(conversation, "customer", asked["text"])
    async with httpx.AsyncClient(timeout=10) as shop:
        profile = await _profile(shop, who)
    rules = RuleResident()
    await sync_to_async(rules.refresh)(who.site_id, 1)
    _decide(rules, who, asked["text"], profile)
    search_began = time.monotonic()
    passages = await _search(who.site_id, asked["text"])
    retrieval_ms = 1_000 * (time.monotonic() - search_began)
    history = await sync_to_async(_history)(conversation)
    messages = _messages(await sync_to_async(_site)(who), profile, passages, history)
    endpoint = await sync_to_async(_endpoint)(who.site_id)

    async def stream() -> AsyncIterator[str]:
        answer = ""
        async with _new_client() as model:
            async for text in _tokens(model, endpoint, messages):
                answer += text
                yield f"data: {json.dumps({'text': text})}\n\n"
        await sync_to_async(_save)(conversation, "assistant", answer)
        yield f"data: {json.dumps({'retrieval_ms': retrieval_ms})}\n\ndata: [DONE]\n\n"

    return StreamingHttpResponse(stream(), content_type="text/event-stream")


class Modern(AsyncJsonWebsocketConsumer):  # type: ignore[misc]  # channels has no types
    async def receive_json(self, content: dict[str, Any]) -> None:
        if "text" not in content:
            self.who = await sync_to_async(_who)(content)
            self.conversation = await sync_to_async(_open)(self.who)
            self.site = await sync_to_async(_site)(self.who)
            self.endpoint = await sync_to_async(_endpoint)(self.who.site_id)
            if not _compiled.loaded_version(self.who.site_id):
                await sync_to_async(_compiled.refresh)(self.who.site_id, 1)
            await self.send_json({"type": "ready"})
            return
        await self._answer(content["text"])

    async def _answer(self, question: str) -> None:
        await sync_to_async(_save)(self.conversation, "customer", question)
        await self.send_json({"type": "saved"})
        profile = await _profile(_client(), self.who)
        _decide(_compiled, self.who, question, profile)
        search_began = time.monotonic()
        passages = await _search(self.who.site_id, question)
        retrieval_ms = 1_000 * (time.monotonic() - search_began)
        history = await sync_to_async(_history)(self.conversation)
        answer = ""
        async for text in _tokens(_client(), self.endpoint, _messages(self.site, profile, passages, history)):
            answer += text
            await self.send_json({"type": "token", "text": text})
        await sync_to_async(_save)(self.conversation, "assistant", answer)
        await self.send_json({"type": "done", "retrieval_ms": retrieval_ms})


def _client() -> httpx.AsyncClient:
    """One client for the process. Its keep-alive outlasts the pause between two questions."""
    if not _kept_client:
        limits = httpx.Limits(max_connections=500, max_keepalive_connections=500, keepalive_expiry=600)
        verify = settings.ENVIRONMENT.llm_ca_file or True
        _kept_client.append(httpx.AsyncClient(verify=verify, timeout=60, limits=limits))
    return _kept_client[0]


application = ProtocolTypeRouter(
    {"http": django_application, "websocket": URLRouter([path("modern", Modern.as_asgi())])}
)

urlpatterns = [path("traditional", traditional)]
