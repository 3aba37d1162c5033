"""A conversation goes on in another process where the first one stopped: same prompt prefix, or read anew."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import redis

from apps.engine.context import Context
from apps.engine.types import Speaker
from apps.turns.kept.context_copies import written
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.ledger import Seen
from tests.fakes.upstream.script import Text
from tests.support.metrics import metrics
from tests.support.model_line import answers
from tests.support.processes import Deployment, Web, wait_for
from tests.support.world import World, made

pytestmark = pytest.mark.usefixtures("orm")

# Six such messages pass the high mark, so that the context is shortened; read from the log it would be whole.
LONG = " ".join(f"Item {n} of the catalogue costs {n}.50 euro and weighs {n} grams." for n in range(120))


def count(web: Web, name: str, **labels: str) -> float:
    """A counter of the process, 0 before it first counts."""
    told = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return metrics(web).get(f"{name}{{{told}}}", 0.0)


def grows(web: Web, name: str, **labels: str) -> Callable[[], bool]:
    before = count(web, name, **labels)
    return lambda: count(web, name, **labels) > before


TRIES_S = 60.0
COPIES = "chatsvc_context_copies_total"
FOUND = "chatsvc_contexts_total"


async def until_counted(
    tried: Callable[[World, str], Awaitable[Seen]], world: World, web: Web, name: str, **labels: str
) -> Seen:
    """Tries with one visitor after the other until `web` has counted it; the model's last request.

    A turn does without a copy that is not there within 50 ms, and a busy machine may take longer.
    """
    async with asyncio.timeout(TRIES_S):
        while True:
            counted = grows(web, name, **labels)
            seen = await tried(world, world.visitor())
            if counted():
                return seen


async def ask(world: World, web: Web, upstream: Upstream, token: str, text: str, answer: str) -> Seen:
    """Asks and waits until the answer is stored and the context is copied; the model's request."""
    copied = grows(web, COPIES, outcome="written")
    upstream.next(Plan(script=Text(answer)))
    async with world.customer(web, token=token) as line:
        await line.say(text)
        await line.message(answer)
    wait_for(copied)
    return answers(upstream)[-1]


async def test_another_process_goes_on_with_the_same_prefix_digest_included(
    web_pair: tuple[Web, Web], plain_upstream: Upstream
) -> None:
    first, second = web_pair
    here: list[Seen] = []

    async def moved(world: World, token: str) -> Seen:
        shortened = grows(first, "chatsvc_context_digests_total", outcome="shortened")
        for part in range(6):
            await ask(world, first, plain_upstream, token, f"Part {part}: {LONG}", f"Read part {part}.")
        wait_for(shortened)
        here.append(await ask(world, first, plain_upstream, token, "And the price of item 7?", "7.50 euro."))
        return await ask(world, second, plain_upstream, token, "And of item 8?", "8.50 euro.")

    there = await until_counted(moved, await made(model=plain_upstream), second, FOUND, found="copied")
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
    plain_upstream: Upstream,
    deployment: Deployment,
    spoil: Callable[[redis.Redis, str], None],
    counter: str,
    labels: dict[str, str],
) -> None:
    first, second = web_pair

    async def moved(world: World, token: str) -> Seen:
        async with world.customer(first, token=token) as line:
            key = f"context:{line.conversation}"
        await ask(world, first, plain_upstream, token, "My number is 1042", "Noted.")
        with redis.Redis.from_url(deployment.redis_url) as client:
            assert 0 < client.ttl(key) <= 600
            spoil(client, key)
        seen = await ask(world, second, plain_upstream, token, "Which was it?", "1042.")
        assert "9999" not in seen.body
        assert seen.body.index("My number is 1042") < seen.body.index("Noted.") < seen.body.index("Which was")
        return seen

    await until_counted(moved, await made(model=plain_upstream), second, counter, **labels)
