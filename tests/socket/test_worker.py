"""A worker that stops taking tasks: how that shows, and that it does not stay so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest
from celery import Celery
from redis import Redis as RedisClient

from apps.stores.tasks import QUEUE_TASKS
from chatsvc.worker import STUCK_CODE
from tests.chaos.links import Link
from tests.support.breaking import Redis
from tests.support.metrics import metrics
from tests.support.processes import Beat, Deployment, Web, Worker, ended_after, wait_for


@pytest.fixture
def tasks(redis: Redis) -> Iterator[Celery]:
    """Sends tasks and commands to whoever works for this Redis."""
    app = Celery(broker=redis.url.replace("unix://", "redis+socket://"))
    yield app
    app.close()


def works(worker: Worker, tasks: Celery) -> bool:
    """Whether it does a task that is sent now. Raises `AssertionError` where it does not."""
    before = worker.output().count("succeeded")
    tasks.send_task("apps.turns.tasks.sing")
    wait_for(lambda: worker.output().count("succeeded") > before)
    return True


def test_the_canary_goes_from_beat_over_a_worker_to_the_page(
    deployment: Deployment, redis: Redis, redis_client: RedisClient
) -> None:
    with ExitStack() as stack:
        web = Web(deployment, REDIS_URL=redis.url)
        stack.enter_context(ended_after(web))
        assert httpx.get(f"{web.url}/readyz").json()["checks"]["worker"] == "late"
        for process in (Worker(deployment, REDIS_URL=redis.url), Beat(deployment, REDIS_URL=redis.url)):
            stack.enter_context(ended_after(process))
        for _ in range(2):
            wait_for(lambda: httpx.get(f"{web.url}/readyz").json()["checks"]["worker"] == "ok")
            ready = httpx.get(f"{web.url}/readyz")
            assert (ready.status_code, ready.json()["status"]) == (200, "ok")
            assert 0 <= metrics(web)["chatsvc_worker_canary_age_seconds"] < 30
            redis.kill()
            redis.start()
            redis.wait_ready()
            redis_client.flushall()


def test_a_worker_that_takes_no_tasks_any_more_ends_to_be_started_again(
    deployment: Deployment, redis: Redis, tasks: Celery
) -> None:
    worker = Worker(deployment, REDIS_URL=redis.url)
    with ended_after(worker):
        assert works(worker, tasks)
        # What resets of Redis have done to workers: connected, idle, answering pings, and deaf to the queue.
        tasks.control.cancel_consumer("celery", reply=True)
        tasks.send_task("apps.turns.tasks.sing")
        assert worker.process.wait(60) == STUCK_CODE
        assert "the worker is stuck: 1 tasks wait, and it takes none" in worker.output()
        before = worker.output().count("succeeded")
        worker.revive()
        wait_for(lambda: worker.output().count("succeeded") > before)
        assert works(worker, tasks)


async def test_a_worker_whose_connections_died_without_a_word_works_on_by_itself(
    deployment: Deployment, redis: Redis, distant: Link, tasks: Celery
) -> None:
    # Not on this thread: the network that it starts behind runs here. The thread lives as long as the loop.
    worker = await asyncio.to_thread(Worker, deployment, REDIS_URL=f"redis://127.0.0.1:{distant.port}")
    with ended_after(worker):
        assert await asyncio.to_thread(works, worker, tasks)
        distant.strand()
        # What a dead connection was waiting for is handed to it and lost: only what is sent again gets done.
        before = worker.output().count("succeeded")
        beat = Beat(deployment, REDIS_URL=redis.url)
        with ended_after(beat):
            await asyncio.to_thread(wait_for, lambda: worker.output().count("succeeded") > before)
        assert worker.running


def test_beat_adds_nothing_to_a_queue_that_nobody_works_off(
    deployment: Deployment, redis: Redis, redis_client: RedisClient
) -> None:
    redis_client.delete("celery")
    redis_client.rpush("celery", *["a task"] * QUEUE_TASKS)
    beat = Beat(deployment, REDIS_URL=redis.url)
    with ended_after(beat):
        wait_for(lambda: "sweep-outbox is left out" in beat.output())
        assert redis_client.llen("celery") == QUEUE_TASKS
        redis_client.delete("celery")
        wait_for(lambda: bool(redis_client.llen("celery")))
    redis_client.delete("celery")
