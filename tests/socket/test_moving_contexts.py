"""A conversation goes on in another process where the first one stopped: same prompt prefix, or read anew."""

from __future__ import annotations

import http.client
from collections.abc import Callable

import pytest
import redis

from apps.engine.context import Context
from apps.engine.types import Speaker
from apps.turns.context_copies import written
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text
from tests.support.processes import Deployment, Web, wait_for
from tests.support.world import World, made

pytestmark = pytest.mark.usefixtures("orm")

# Six such messages pass the high mark, so that the context is shortened; read from the log it would be whole.
LONG = " ".join(f"Item {n} of the catalogue costs {n}.50 euro and weighs {n} grams." for n in range(120))


def count(web: Web, name: str, **labels: str) -> float:
    """A counter of the process, 0 before it first counts."""
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=5)
    try:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    finally:
        connection.close()
    told = ",".join(f'{label}="{value}"' for label, value in labels.items())
    start = f"{name}{{{told}}} "
    return next((float(line.removeprefix(start)) for line in lines if line.startswith(start)), 0.0)


def grows(web: Web, name: str, **labels: str) -> Callable[[], bool]:
    before = count(web, name, **labels)
    return lambda: count(web, name, **labels) > before


COPIES = "chatsvc_context_copies_total"
FOUND = "chatsvc_contexts_total"


async def ask(world: World, web: Web, upstream: Upstream, token: str, text: str, answer: str) -> str:
    """Asks and waits until the answer is stored and the context is copied; the body of the model's request."""
    copied = grows(web, COPIES, outcome="written")
    upstream.next(Plan(script=Text(answer)))
    async with world.customer(web, token=token) as line:
        await line.say(text)
        await line.message(answer)
    wait_for(copied)
    return upstream.requests()[-1].body


async def test_another_process_goes_on_with_the_same_prefix_digest_included(
    web_pair: tuple[Web, Web], plain_upstream: Upstream
) -> None:
    first, second = web_pair
    world = await made(model=plain_upstream)
    token = world.visitor()
    shortened = grows(first, "chatsvc_context_digests_total", outcome="shortened")
    for part in range(6):
        await ask(world, first, plain_upstream, token, f"Part {part}: {LONG}", f"Read part {part}.")
    wait_for(shortened)
    here = await ask(world, first, plain_upstream, token, "And the price of item 7?", "7.50 euro.")
    copied = grows(second, FOUND, found="copied")
    there = await ask(world, second, plain_upstream, token, "And of item 8?", "8.50 euro.")
    assert "<earlier>" in here
    assert there.startswith(here.removesuffix("]}"))
    assert copied()
    request = plain_upstream.requests()[-1]
    assert request.cached_tokens >= 0.95 * plain_upstream.requests()[-2].prompt_tokens


async def test_without_the_copy_the_log_has_it_all(
    web_pair: tuple[Web, Web], plain_upstream: Upstream, deployment: Deployment
) -> None:
    first, second = web_pair
    world = await made(model=plain_upstream)
    token = world.visitor()
    await ask(world, first, plain_upstream, token, "My number is 1042", "Noted.")
    with redis.Redis.from_url(deployment.redis_url) as client:
        client.flushall()
    read = grows(second, FOUND, found="read")
    there = await ask(world, second, plain_upstream, token, "Which was it?", "1042.")
    assert read()
    assert there.index("My number is 1042") < there.index("Noted.") < there.index("Which was it?")


async def test_a_broken_copy_is_counted_and_not_used(
    web_pair: tuple[Web, Web], plain_upstream: Upstream, deployment: Deployment
) -> None:
    first, second = web_pair
    world = await made(model=plain_upstream)
    token = world.visitor()
    async with world.customer(first, token=token) as line:
        conversation = line.conversation
    await ask(world, first, plain_upstream, token, "My number is 1042", "Noted.")
    with redis.Redis.from_url(deployment.redis_url) as client:
        assert 0 < client.ttl(f"context:{conversation}") <= 600
        client.set(f"context:{conversation}", b"\x01 no longer what it was")
    broken = grows(second, COPIES, outcome="broken")
    there = await ask(world, second, plain_upstream, token, "Which was it?", "1042.")
    assert broken()
    assert there.index("My number is 1042") < there.index("Noted.") < there.index("Which was it?")


async def test_a_copy_of_another_numbering_is_counted_and_not_used(
    web_pair: tuple[Web, Web], plain_upstream: Upstream, deployment: Deployment
) -> None:
    first, second = web_pair
    world = await made(model=plain_upstream)
    token = world.visitor()
    async with world.customer(first, token=token) as line:
        key = f"context:{line.conversation}"
    await ask(world, first, plain_upstream, token, "My number is 1042", "Noted.")
    with redis.Redis.from_url(deployment.redis_url) as client:
        context = Context(seq=100)
        context.add(1, Speaker.CUSTOMER, "My number is 9999")
        client.set(key, written("before the backup", context))
    stale = grows(second, COPIES, outcome="stale")
    there = await ask(world, second, plain_upstream, token, "Which was it?", "1042.")
    assert stale()
    assert "9999" not in there
    assert there.index("My number is 1042") < there.index("Noted.") < there.index("Which was it?")
