"""How many lines there may be, how much is done on them, and when one ends by itself, where the numbers are small."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress

import httpx
import pytest
from redis.asyncio import Redis
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from apps.gateway.rates import of_address, of_workspace
from apps.stores.buckets import Spending, spend
from apps.wire.protocol import FRAME_LIMIT_BYTES
from chatsvc.environment import BASE_DIR
from tests.support.breaking import locked_database
from tests.support.client import DEADLINE_S, Client, Frame, connected
from tests.support.http_line import JSON, http_line
from tests.support.hurried import (
    GREETED_AT_ONCE,
    HEARTBEAT_S,
    LINES_A_PERSON,
    PERSON_BURST,
    WAITING_AN_ADDRESS,
)
from tests.support.metrics import metrics_at
from tests.support.processes import Deployment, Web, ended_after
from tests.support.world import act, made

pytestmark = pytest.mark.usefixtures("orm")


class HurriedWeb(Web):
    program = ("-m", "tests.support.hurried")


@pytest.fixture(scope="module")
def pair(deployment: Deployment) -> Iterator[tuple[Web, Web]]:
    """Two processes behind a proxy, which tells where a client comes from."""
    one = HurriedWeb(deployment, "hurried-one", BEHIND_TLS_PROXY="1")
    with ended_after(one):
        two = HurriedWeb(deployment, "hurried-two", BEHIND_TLS_PROXY="1")
        with ended_after(two):
            yield one, two


async def asked(client: Client, times: int) -> int:
    """How often the customer's list was shown, of so many times that it was asked for."""
    for _ in range(times):
        await client.send({"type": "conversation.list"})
    answers = [await client.expect_one_of("conversations", "refused") for _ in range(times)]
    return sum(answer["type"] == "conversations" for answer in answers)


async def test_a_visitor_has_one_allowance_on_all_sockets_and_processes(pair: tuple[Web, Web]) -> None:
    world = await made()
    token = world.visitor()
    async with (
        world.customer(pair[0], token=token) as here,
        world.customer(pair[1], token=token) as elsewhere,
        world.customer(pair[1]) as another,
    ):
        assert await asked(here.client, PERSON_BURST) == PERSON_BURST
        assert await asked(here.client, 1) == 0
        # The first question there may pass before that process has heard; what follows does not.
        first = await asked(elsewhere.client, 1)
        for _ in range(20):
            if not await asked(elsewhere.client, 1):
                break
        refused = elsewhere.client.received("refused")
        assert await asked(another.client, 5) == 5
        # Beside the allowance stands what must always be possible.
        await elsewhere.client.send({"type": "ping"})
        await elsewhere.client.expect("pong")
    assert first <= 1
    assert refused
    assert (refused[0]["code"], refused[0]["of"]) == ("slow_down", "conversation.list")
    assert refused[0]["retry_after_s"] > 0


@pytest.mark.parametrize("of", ["workspace", "address"])
async def test_a_crowd_has_one_allowance_and_leaves_room_for_the_others(
    pair: tuple[Web, Web], deployment: Deployment, of: str
) -> None:
    world, elsewhere = await made(), await made()
    address = {"workspace": "1.1.1.1", "address": "1.0.0.1"}[of]
    bound = of_workspace(world.workspace.pk) if of == "workspace" else of_address(address)[0]
    async with Redis.from_url(deployment.redis_url) as redis:
        # A crowd at other processes has taken all that there is, and more.
        taken = Spending(f"rate:{of}:{bound.key}", bound.burst, bound.a_second, 2 * bound.burst)
        await spend(redis, [taken])
    hello: Frame = {"type": "hello", "token": world.visitor()}
    async with (
        connected(f"{pair[0].ws}/ws/customer", address=address) as client,
        elsewhere.customer(pair[0]) as another,
    ):
        await client.send(hello)
        await client.expect("welcome")
        for _ in range(20):  # what comes before the process has heard of the others may pass
            if not await asked(client, 1):
                break
        refused = client.received("refused")[-1]
        assert await asked(another.client, 5) == 5
    assert (refused["code"], refused["message"]) == ("slow_down", f"too much of one {of}")
    assert refused["retry_after_s"] > 1


async def test_a_refused_message_is_not_stored_and_is_taken_later(pair: tuple[Web, Web]) -> None:
    world = await made()
    async with world.customer(pair[0]) as line:
        await asked(line.client, PERSON_BURST)
        sent = await act(line.client, "message.send", line.conversation, text="Too much?")
        refused = await line.client.expect("refused", id=sent)
        await line.client.send({"type": "ping"})
        await line.client.expect("pong")
        assert line.client.received("event") == []
    assert (refused["code"], refused["conversation"]) == ("slow_down", line.conversation)


async def test_the_oldest_of_a_visitors_lines_gives_way(pair: tuple[Web, Web]) -> None:
    world = await made()
    token = world.visitor()
    async with AsyncExitStack() as stack:
        lines = [
            await stack.enter_async_context(world.customer(pair[0], token=token))
            for _ in range(LINES_A_PERSON + 1)
        ]
        assert await lines[0].client.closed() == (4409, "replaced")
        for line in lines[1:]:
            await line.client.send({"type": "ping"})
            await line.client.expect("pong")


@pytest.mark.parametrize(
    ("addresses", "other"),
    [
        (["8.8.4.4"] * WAITING_AN_ADDRESS, "9.9.9.9"),
        ([f"2001:4860:1:2::{n}" for n in range(WAITING_AN_ADDRESS)], "2001:4860:1:3::1"),
    ],
    ids=["of IPv4", "of an IPv6 network"],
)
async def test_those_of_one_address_who_have_not_said_who_they_are_are_few(
    pair: tuple[Web, Web], addresses: list[str], other: str
) -> None:
    world = await made()
    url = f"{pair[0].ws}/ws/customer"
    async with AsyncExitStack() as stack:
        waiting = [await stack.enter_async_context(connected(url, address=address)) for address in addresses]
        async with connected(url, address=addresses[-1]) as too_many:
            assert await too_many.closed() == (4429, "too many")
            [refused] = too_many.received("refused")
            assert (refused["code"], refused["retry_after_s"]) == ("slow_down", 10.0)
        hello = {"type": "hello", "token": world.visitor()}
        headers = {"X-Forwarded-For": addresses[-1]}
        async with http_line(pair[0].url, "customer", "poll", headers=headers, hello=hello) as too_many:
            assert await too_many.closed() == (4429, "too many")
        async with connected(url, address=other) as client:
            await client.send(hello)
            await client.expect("welcome")
        # Whoever has said it makes room.
        await waiting[0].send(hello)
        await waiting[0].expect("welcome")
        async with connected(url, address=addresses[-1]) as client:
            await client.send(hello)
            await client.expect("welcome")


async def test_a_frame_above_a_mebibyte_is_refused_on_every_way(pair: tuple[Web, Web]) -> None:
    world = await made()
    large = json.dumps({"type": "hello", "token": world.visitor(), "x": "x" * FRAME_LIMIT_BYTES})
    async with connected(f"{pair[0].ws}/ws/customer") as client:
        await client.send_raw(large)
        assert (await client.closed())[0] == 1009
    async with connect(f"{pair[0].ws}/ws/customer", max_size=None) as socket:
        await socket.send(large[n : n + 100_000] for n in range(0, len(large), 100_000))
        await socket.wait_closed()
        assert socket.close_code == 1009
    async with httpx.AsyncClient(base_url=pair[0].url, timeout=20) as http:
        for edge in ("stream", "poll"):
            answer = await http.post(f"/api/v1/{edge}/customer", content=large, headers=JSON)
            assert answer.status_code == 413
    hello = {"type": "hello", "token": world.visitor()}
    async with http_line(pair[0].url, "customer", "stream", hello=hello, posts_to=pair[1].url) as line:
        await line.expect("welcome")
        assert (await line.line.post(large, 1)).status_code == 413
        await line.send({"type": "ping"})
        await line.expect("pong")


def test_a_process_says_at_its_start_how_many_files_it_needs() -> None:
    few = "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256));"
    serve = "from django.core.management import execute_from_command_line as run; run(['manage.py', 'serve'])"
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    environment = "import os; os.environ['DJANGO_SETTINGS_MODULE'] = 'chatsvc.settings';"
    done = subprocess.run(
        [sys.executable, "-c", f"{environment} {few} {serve}"],
        capture_output=True,
        text=True,
        cwd=BASE_DIR,
        check=False,
    )
    assert done.returncode != 0
    assert "Only 256 open files are allowed, 1024 are needed" in done.stderr
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


async def test_gathered_hellos_of_one_address_are_let_in_one_after_the_other(pair: tuple[Web, Web]) -> None:
    """An office that comes back all at once: those who find no room are told when to come again."""
    world = await made()

    async def come() -> str:
        async with connected(f"{pair[1].ws}/ws/customer", address="8.8.8.8") as client:
            with suppress(ConnectionClosed):
                await client.send({"type": "hello", "token": world.visitor()})
            return str((await client.expect_one_of("welcome", "refused"))["type"])

    came = await asyncio.gather(*(come() for _ in range(3 * WAITING_AN_ADDRESS)))
    assert came.count("welcome") >= WAITING_AN_ADDRESS


async def test_of_all_who_come_at_once_those_who_wait_too_long_are_told_to_come_again(
    pair: tuple[Web, Web], deployment: Deployment
) -> None:
    world = await made()
    async with AsyncExitStack() as stack:
        line = await stack.enter_async_context(world.customer(pair[0]))
        clients = [
            await stack.enter_async_context(connected(f"{pair[0].ws}/ws/customer"))
            for _ in range(GREETED_AT_ONCE + 1)
        ]
        with locked_database(deployment.database_url):
            for client in clients:
                await client.send({"type": "hello", "token": world.visitor()})
            answers = [asyncio.create_task(client.expect_one_of("welcome", "refused")) for client in clients]
            await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
            await beat(line.client)
        told = [(await answer)["type"] for answer in answers]
        assert sorted(told) == ["refused", *["welcome"] * GREETED_AT_ONCE]
        late = clients[told.index("refused")]
        assert await late.closed() == (1013, "too many")
        [refused] = late.received("refused")
        assert (refused["code"], refused["of"]) == ("unavailable", "hello")
        async with world.customer(pair[0]) as again:
            await beat(again.client)


async def beat(client: Client, *, hidden: bool = False) -> Frame:
    """Pings; the pong."""
    await client.send({"type": "ping", "hidden": hidden})
    return await client.expect("pong")


async def test_the_interval_follows_the_traffic_and_is_told_while_the_line_lives(web: Web) -> None:
    world = await made()
    async with world.customer(web) as line:
        assert line.welcome["heartbeat_s"] == 30
        for _ in range(2):
            await asked(line.client, 1)  # close together: a busy site
        assert (await beat(line.client))["heartbeat_s"] == 60  # proven by the traffic
        assert (await beat(line.client))["heartbeat_s"] == 15  # quiet again
        assert "heartbeat_s" not in await beat(line.client)  # as before
        async with world.customer(web) as other:
            assert other.welcome["heartbeat_s"] == 15
    async with (await made()).customer(web) as elsewhere:
        assert elsewhere.welcome["heartbeat_s"] == 30


async def test_who_is_silent_for_three_heartbeats_is_let_go_and_who_beats_is_not(
    pair: tuple[Web, Web],
) -> None:
    world = await made()
    kim = await asyncio.to_thread(world.agent, "Kim")
    hello: Frame = {"type": "hello", "token": world.visitor()}
    async with (
        world.customer(pair[0]) as beating,
        world.desk(pair[0], kim) as desk,
        connected(f"{pair[0].ws}/ws/customer") as socket,
        http_line(pair[0].url, "customer", "stream", hello=hello) as stream,
    ):
        await socket.send(hello)
        for silent in (socket, stream):
            await silent.expect("welcome")
        deaf = await _deaf_socket(pair[0], world.visitor())
        ends = asyncio.gather(*(silent.closed(deadline_s=30) for silent in (socket, stream)))
        while not ends.done():
            for client in (beating.client, desk):
                await beat(client, hidden=True)
            await asyncio.wait([ends], timeout=HEARTBEAT_S / 2)
        assert await ends == [(1001, "silent")] * 2
        # One that neither reads its last word nor answers it goes as well: the two who beat are left.
        async with asyncio.timeout(30):
            while await open_connections(pair[0]) > 2:
                for client in (beating.client, desk):
                    await beat(client, hidden=True)
                await asyncio.sleep(0.1)
        deaf.close()


async def _deaf_socket(web: Web, token: str) -> asyncio.StreamWriter:
    """A client that says hello and takes part in nothing further, not even in its own end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", web.port, limit=1024)
    handshake = (
        "GET /ws/customer HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    writer.write(handshake.encode())
    await reader.readuntil(b"\r\n\r\n")
    hello = json.dumps({"type": "hello", "token": token, "padding": "x" * 125}).encode()
    writer.write(b"\x81\xfe" + len(hello).to_bytes(2, "big") + bytes(4) + hello)
    return writer


async def open_connections(web: Web) -> float:
    samples = await asyncio.to_thread(metrics_at, f"127.0.0.1:{web.port}", 20)
    return sum(value for name, value in samples.items() if name.startswith("chatsvc_connections{"))


async def test_only_a_hidden_page_with_a_resolved_conversation_sleeps(pair: tuple[Web, Web]) -> None:
    world = await made()
    kim = await asyncio.to_thread(world.agent, "Kim")
    token = world.visitor()
    async with (
        world.desk(pair[1], kim) as desk,
        world.customer(pair[0], token=token) as hidden,
        world.customer(pair[0], token=token) as seen,
        world.customer(pair[0]) as unresolved,
    ):
        await hidden.say("Thanks!")
        await unresolved.say("And mine?")
        await desk.expect("ack", id=await act(desk, "conversation.resolve", hidden.conversation))
        end = asyncio.create_task(_closed_while_beating(hidden.client))
        while not end.done():
            await beat(seen.client)
            await beat(unresolved.client, hidden=True)
            await beat(desk, hidden=True)
            await asyncio.wait([end], timeout=0.1)
        assert await end == (4408, "asleep")
        # As long again: it was not for want of time.
        async with world.customer(pair[0], token=token, conversation=hidden.conversation) as again:
            assert again.conversation == hidden.conversation
            assert await _closed_while_beating(again.client) == (4408, "asleep")
            for client in (seen.client, unresolved.client, desk):
                await beat(client, hidden=client is not seen.client)
        # Whoever comes back has missed nothing.
        await seen.say("One more thing")
        async with world.customer(pair[0], token=token) as awake:
            await awake.message("One more thing")
            await beat(awake.client, hidden=True)


async def _closed_while_beating(client: Client) -> tuple[int, str]:
    """Pings as a hidden page does, until the line ends."""
    end = asyncio.create_task(client.closed(deadline_s=30))
    while not end.done():
        with suppress(ConnectionClosed):
            await client.send({"type": "ping", "hidden": True})
        await asyncio.wait([end], timeout=0.1)
    return await end


async def test_an_agent_is_there_while_one_tab_is_on_whatever_process(pair: tuple[Web, Web]) -> None:
    world = await made()
    kim = await asyncio.to_thread(world.agent, "Kim")

    async def reachable() -> bool:
        async with world.customer(pair[1]) as line:
            return bool(line.welcome["availability"]["online"])

    async with world.desk(pair[0], kim) as one:
        async with world.desk(pair[1], kim):
            assert await reachable()
        await beat(one)
        assert await reachable()
        # Away is the agent's own choice: no other tab, no heartbeat and no coming back undoes it.
        await one.send({"type": "presence.set", "online": False})
        await beat(one)  # frames are carried out one after the other
        async with world.desk(pair[1], kim) as two:
            await beat(one)
            await beat(two)
            assert not await reachable()
            await two.send({"type": "presence.set", "online": True})
            await beat(two)
            assert await reachable()
    async with asyncio.timeout(DEADLINE_S):
        while await reachable():
            pass
