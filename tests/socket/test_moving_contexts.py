"""A conversation goes on in another process where the first one stopped: same prompt prefix, or read anew."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pytest
import redis

from apps.engine.context import Context
from apps.engine.types import Speaker
from apps.stores.codecs import Undecodable
from apps.turns.kept.context_copies import read, written
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.ledger import Seen
from tests.fakes.upstream.script import Text
from tests.support.client import DEADLINE_S
from tests.support.metrics import counted
from tests.support.model_line import answers
from tests.support.processes import Deployment, Web, wait_for
from tests.support.world import World, made

pytestmark = pytest.mark.usefixtures("orm")

# Six such messages pass the high mark, so that the context is shortened; read from the log it would be whole.
LONG = " ".join(f"Item {n} of the catalogue costs {n}.50 euro and weighs {n} grams." for n in range(120))


TRIES_S = 60.0
COPIES = "chatsvc_context_copies_total"
FOUND = "chatsvc_contexts_total"


@pytest.fixture
def copies(deployment: Deployment) -> Iterator[redis.Redis]:
    """Where the copies lie."""
    client = redis.Redis.from_url(
        deployment.redis_url, socket_connect_timeout=DEADLINE_S, socket_timeout=DEADLINE_S
    )
    yield client
    client.close()


@dataclass(frozen=True, slots=True)
class Visitor:
    """Asks in any process, each time until the context is copied with the answer."""

    world: World
    token: str
    upstream: Upstream
    copies: redis.Redis

    async def ask(self, web: Web, text: str, answer: str) -> Seen:
        """The model's request."""
        self.upstream.next(Plan(script=Text(answer)))
        async with self.world.customer(web, token=self.token) as line:
            await line.say(text)
            await line.message(answer)
            newest = line.client.received("event")[-1]["seq"]
        await asyncio.to_thread(wait_for, lambda: self._copied_upto(line.conversation) >= newest)
        return answers(self.upstream)[-1]

    def _copied_upto(self, conversation: str) -> int:
        stored = self.copies.get(key_of(conversation))
        try:
            return read(stored).context.seq if isinstance(stored, bytes) else -1
        except Undecodable:
            return -1


def key_of(conversation: str) -> str:
    return f"context:{conversation}"


@pytest.fixture
async def visitors(plain_upstream: Upstream, copies: redis.Redis) -> Callable[[], Visitor]:
    """A new one each time."""
    world = await made(model=plain_upstream)
    return lambda: Visitor(world, world.visitor(), plain_upstream, copies)


async def until_counted(
    tried: Callable[[Visitor], Awaitable[Seen]],
    visitors: Callable[[], Visitor],
    web: Web,
    name: str,
    **labels: str,
) -> Seen:
    """Tries with one visitor after the other until `web` has counted it; the model's last request.

    A turn does without a copy that is not there within 50 ms, and a busy machine may take longer.
    """
    async with asyncio.timeout(TRIES_S):
        while True:
            before = counted(web, name, **labels)
            seen = await tried(visitors())
            if counted(web, name, **labels) > before:
                return seen


async def test_another_process_goes_on_with_the_same_prefix_digest_included(
    web_pair: tuple[Web, Web], visitors: Callable[[], Visitor]
) -> None:
    first, second = web_pair
    here: list[Seen] = []

    async def moved(visitor: Visitor) -> Seen:
        digests = partial(counted, first, "chatsvc_context_digests_total", outcome="shortened")
        before = digests()
        for part in range(6):
            await visitor.ask(first, f"Part {part}: {LONG}", f"Read part {part}.")
        await asyncio.to_thread(wait_for, lambda: digests() > before)
        here.append(await visitor.ask(first, "And the price of item 7?", "7.50 euro."))
        return await visitor.ask(second, "And of item 8?", "8.50 euro.")

    there = await until_counted(moved, visitors, second, FOUND, found="copied")
    assert "<earlier>" in here[-1].body
    assert there.body.startswith(here[-1].body.removesuffix("]}"))
    assert there.cached_tokens >= 0.95 * here[-1].prompt_tokens


def lost(client: redis.Redis, key: str) -> None:
    client.flushall()


def broken(client: redis.Redis, key: str) -> None:
    client.set(key, b"\x01 no longer what it was")


def of_another_numbering(client: redis.Redis, key: str) -> None:
    context = Context(seq=100)
    context.add(1, Speaker.CUSTOMER, "My number is 9999")
    client.set(key, written("before the backup", context))


@pytest.mark.parametrize(
    ("spoil", "counter", "labels"),
    [
        (lost, FOUND, {"found": "read"}),
        (broken, COPIES, {"outcome": "broken"}),
        (of_another_numbering, COPIES, {"outcome": "stale"}),
    ],
)
async def test_a_copy_that_is_of_no_use_is_counted_and_the_log_has_it_all(
    web_pair: tuple[Web, Web],
    visitors: Callable[[], Visitor],
    copies: redis.Redis,
    spoil: Callable[[redis.Redis, str], None],
    counter: str,
    labels: dict[str, str],
) -> None:
    first, second = web_pair

    async def moved(visitor: Visitor) -> Seen:
        async with visitor.world.customer(first, token=visitor.token) as line:
            key = key_of(line.conversation)
        await visitor.ask(first, "My number is 1042", "Noted.")
        assert 0 < copies.ttl(key) <= 600
        spoil(copies, key)
        seen = await visitor.ask(second, "Which was it?", "1042.")
        assert "9999" not in seen.body
        assert seen.body.index("My number is 1042") < seen.body.index("Noted.") < seen.body.index("Which was")
        return seen

    await until_counted(moved, visitors, second, counter, **labels)
