"""What a gRPC hop between the process of the socket and one that thinks would cost: `python -m bench.grpc_hop`.

One bidirectional stream a turn over a channel that is open already: the prompt goes out, small deltas come back. Both
ends are Python (`grpc.aio`), on the loopback, in two processes with one clock. Beside it the same deltas through a
queue of one process, as a turn has them now. Needs `grpcio`, which the product does not: install it where you run this.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

try:
    import grpc
    import grpc.aio
except ModuleNotFoundError:
    sys.exit("grpcio is not installed: python -m venv /tmp/hop && /tmp/hop/bin/pip install grpcio")

METHOD = "/bench.Turns/Think"
DELTAS = 100
DELTA = b" on its way now"
PROMPT = b"p" * 6_000  # about 1,500 tokens
# A stamp in front of every delta: when it was said, monotonic nanoseconds.
STAMP = struct.Struct("!q")


@dataclass(slots=True)
class Cost:
    """Microseconds: from a delta's saying to its hearing, and from a turn's beginning to its first delta."""

    delta_us: list[float] = field(default_factory=list)
    first_us: list[float] = field(default_factory=list)


def main() -> int:
    options = _options()
    if options.serve:
        asyncio.run(_serve(options.every_ms / 1_000))
        return 0
    command = [sys.executable, "-m", "bench.grpc_hop", "--serve", "--every-ms", str(options.every_ms)]
    with subprocess.Popen(
        command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None  # noqa: S101 - a pipe was asked for
            port = int(server.stdout.readline())
            asyncio.run(_compare(port, options))
        finally:
            server.terminate()
    return 0


async def _compare(port: int, options: argparse.Namespace) -> None:
    print("| at once | way | a delta, P50 µs | P99 | to the first delta, P50 µs | P99 | our CPU a turn, ms |")
    print("|---|---|---|---|---|---|---|")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        await channel.channel_ready()

        async def remote(cost: Cost) -> None:
            await _remote(channel, cost)

        async def local(cost: Cost) -> None:
            await _local(cost, options.every_ms / 1_000)

        for at_once in (1, 20):
            for name, turn in (("a queue in one process", local), ("a gRPC stream", remote)):
                await _turns(turn, Cost(), at_once, at_once)  # warm
                cost, cpu_s = Cost(), time.process_time()
                await _turns(turn, cost, options.turns, at_once)
                cpu_ms = (time.process_time() - cpu_s) * 1_000 / options.turns
                print(f"| {at_once} | {name} | {_of(cost.delta_us)} | {_of(cost.first_us)} | {cpu_ms:.1f} |")


async def _turns(turn: Callable[[Cost], Awaitable[None]], cost: Cost, count: int, at_once: int) -> None:
    async def some() -> None:
        for _ in range(max(1, count // at_once)):
            await turn(cost)

    await asyncio.gather(*(some() for _ in range(at_once)))


async def _remote(channel: Any, cost: Cost) -> None:
    begun = time.monotonic_ns()
    call = channel.stream_stream(METHOD)()
    await call.write(PROMPT)
    heard = 0
    while (message := await call.read()) is not grpc.aio.EOF:
        _hear(cost, message, begun if heard == 0 else 0)
        heard += 1
    await call.done_writing()


async def _local(cost: Cost, every_s: float) -> None:
    begun = time.monotonic_ns()
    queue: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def think() -> None:
        async for delta in _deltas(every_s):
            queue.put_nowait(delta)
        queue.put_nowait(None)

    thinking = asyncio.create_task(think())
    heard = 0
    while (message := await queue.get()) is not None:
        _hear(cost, message, begun if heard == 0 else 0)
        heard += 1
    await thinking


def _hear(cost: Cost, message: bytes, begun_ns: int) -> None:
    now = time.monotonic_ns()
    cost.delta_us.append((now - STAMP.unpack_from(message)[0]) / 1_000)
    if begun_ns:
        cost.first_us.append((now - begun_ns) / 1_000)


async def _deltas(every_s: float) -> AsyncIterator[bytes]:
    for _ in range(DELTAS):
        yield STAMP.pack(time.monotonic_ns()) + DELTA
        await asyncio.sleep(every_s)


async def _serve(every_s: float) -> None:
    async def think(requests: Any, context: Any) -> AsyncIterator[bytes]:
        async for _ in requests:
            async for delta in _deltas(every_s):
                yield delta
            return

    server = grpc.aio.server()
    handlers = {"Think": grpc.stream_stream_rpc_method_handler(think)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Turns", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await server.wait_for_termination()


def _of(values: list[float]) -> str:
    cuts = statistics.quantiles(values, n=100)
    return f"{cuts[49]:.0f} | {cuts[98]:.0f}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.grpc_hop", description=__doc__)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--every-ms", type=float, default=5.0, help="between two deltas")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
