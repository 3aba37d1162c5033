"""What is looked at, where it is read, and what it may do. All of it is told by the product or by the system."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import psycopg
from redis import Redis

from bench.soak.stack import Stack
from tests.support.metrics import metrics_at
from tests.support.processes import Web

MIB = 1024 * 1024
# Celery's and the channel layer's own; what Celery keeps without an end it keeps once.
_PREFIX = re.compile(r"[:.]|(?<=asgi)")

Figures = dict[str, float]

# What the product tells of itself: the name here, and the metric, summed over its labels and the processes.
_METRICS = {
    "authenticated clients": "chatsvc_sockets",
    "lines over HTTP": "chatsvc_http_lines",
    "turns running": "chatsvc_turns_live",
    "asyncio tasks": "chatsvc_tasks",
    "threads": "chatsvc_threads",
    "audiences listened to": "chatsvc_audiences",
    "model requests in flight": "chatsvc_llm_in_flight",
    "model sockets": "chatsvc_llm_sockets",
    "lanes busy": "chatsvc_llm_lanes_busy",
    "web: heap in use MiB": "chatsvc_heap_bytes",
    "web: Python objects, thousands": "chatsvc_python_blocks",
    "contexts MiB": "chatsvc_context_bytes",
    "answers kept MiB": "chatsvc_answer_cache_bytes",
}


def look(stack: Stack) -> Figures:
    """All figures at this moment. Blocks for some tens of milliseconds."""
    return {
        **_web(stack.webs),
        **_system("web", [web.process.pid for web in stack.webs]),
        **_system("worker", list(_family(stack.worker.process.pid))),
        **_redis(stack.deployment.redis_url),
        **_postgres(stack.deployment.database_url),
        **_upstream(stack),
    }


def _web(webs: Iterable[Web]) -> Figures:
    found: Figures = dict.fromkeys(_METRICS, 0.0)
    for web in webs:
        sums = _sums(web)
        for name, metric in _METRICS.items():
            found[name] += sums.get(metric, 0.0) / _unit(name)
    return found


def _unit(figure: str) -> int:
    if figure.endswith("MiB"):
        return MIB
    return 1_000 if figure.endswith("thousands") else 1


def _sums(web: Web) -> Mapping[str, float]:
    sums: Counter[str] = Counter()
    for name, value in metrics_at(f"127.0.0.1:{web.port}", timeout_s=10).items():
        sums[name.partition("{")[0]] += value  # type: ignore[assignment]
    return sums


def _system(name: str, pids: list[int]) -> Figures:
    links = [link for pid in pids for link in _open_files(pid)]
    memory = [_memory(pid) for pid in pids]
    return {
        f"{name}: file descriptors": len(links),
        f"{name}: system sockets": sum(link.startswith("socket:") for link in links),
        f"{name}: RSS MiB": sum(rss for rss, _ in memory) / MIB,
        f"{name}: PSS MiB": sum(pss for _, pss in memory) / MIB,
    }


def _open_files(pid: int) -> Iterator[str]:
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            yield os.readlink(entry)
        except OSError:
            continue  # closed meanwhile


def _memory(pid: int) -> tuple[int, int]:
    fields = dict(
        line.split(":")[:2] for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    )
    rss, pss = (int(fields[name].split()[0]) * 1024 for name in ("Rss", "Pss"))
    return rss, pss


def _family(pid: int) -> Iterator[int]:
    yield pid
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        yield from _family(int(child))


def _redis(url: str) -> Figures:
    found: Counter[str] = Counter()
    with Redis.from_url(url) as redis:
        for key in redis.scan_iter(count=1_000):
            name = key.decode("utf-8", "replace")
            found[f"Redis keys {prefix_of(name)}"] += 1
            if redis.ttl(key) == -1:
                found["Redis keys without an end"] += 1
        memory, clients = redis.info("memory"), redis.info("clients")
        found["Redis subscriptions"] = len(redis.pubsub_channels())
    return {
        **found,
        "Redis MiB": memory["used_memory"] / MIB,
        "Redis connections": clients["connected_clients"],
    }


def prefix_of(key: str) -> str:
    """What kind of thing a key holds: its name up to what tells it from its kind."""
    return _PREFIX.split(key, maxsplit=1)[0]


def _postgres(url: str) -> Figures:
    """Without our own look."""
    queries = {
        "PostgreSQL connections": "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()",
        "PostgreSQL locks of processes": "SELECT count(*) FROM pg_locks"
        " WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'",
        "leases": "SELECT count(*) FROM turns_processlease",
        "turns live in the database": "SELECT count(*) FROM conversations_conversation WHERE turn <> ''",
        "outbox rows": "SELECT count(*) FROM conversations_outboxitem WHERE done_at IS NULL",
    }
    with psycopg.connect(url, connect_timeout=10) as connection:
        return {
            name: float(connection.execute(query.encode()).fetchone()[0])  # type: ignore[index]
            for name, query in queries.items()
        }


def _upstream(stack: Stack) -> Figures:
    counts = stack.upstream.counts()
    return {
        "model server: requests open": counts.requests_open,
        "model server: connections": counts.connections_open,
        "model server: sockets": counts.sockets_open,
    }
