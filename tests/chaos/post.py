"""What was promised to be mailed, delivered at the end of a run while the worker dies in the middle of its tasks."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress

from celery import Celery
from kombu.exceptions import OperationalError

from tests.chaos.mails import Mailbox
from tests.chaos.report import Post, Report
from tests.chaos.town import Town

_DEATHS = 3
_UNDER_WAY_S = 0.3
_WITHIN_S = 60.0
_SWEEP = "apps.conversations.tasks.sweep_outbox"
# The worker's clock goes on by this before each start: what is due later, or claimed by the dead, is due then.
_HOUR_S = 3600.0


async def deliver(town: Town, reports: Sequence[Report]) -> Post:
    """Nobody is connected any more, so each reply to who left an address is owed a mail, and one only."""
    owed = {reply for report in reports for reply in report.owed}
    post = Post(len(owed))
    tasks = Celery("town", broker=town.redis.url.replace("unix://", "redis+socket://"))
    rng = random.Random(len(owed))
    later_s = 0.0
    for _ in range(_DEATHS if owed else 0):
        later_s += _HOUR_S
        post.killed_at_work += await _die_at_work(town, tasks, later_s, rng)
    town.worker_clock.shift(later_s + _HOUR_S)
    until_s = asyncio.get_running_loop().time() + _WITHIN_S
    while owed - _told(town.mailbox) and asyncio.get_running_loop().time() < until_s:
        await _sweep(tasks)
        await asyncio.sleep(0.5)
    town.worker_clock.shift(0.0)
    _judge(post, town.mailbox, owed)
    return post


async def _die_at_work(town: Town, tasks: Celery, later_s: float, rng: random.Random) -> bool:
    """Whether a delivery was under way when it was killed."""
    town.worker_clock.shift(later_s)
    town.mailbox.pause_s = _UNDER_WAY_S
    delivery = asyncio.create_task(town.mailbox.delivery(_WITHIN_S / 4))
    await _sweep(tasks)
    at_work = await delivery
    await asyncio.sleep(rng.random() * _UNDER_WAY_S)
    town.worker.kill()
    town.mailbox.pause_s = 0.0
    town.worker.start()
    await asyncio.to_thread(town.worker.wait_ready)
    return at_work


async def _sweep(tasks: Celery) -> None:
    """As beat asks for it."""
    with suppress(OperationalError):  # the next one comes soon
        await asyncio.to_thread(tasks.send_task, _SWEEP)


def _told(mailbox: Mailbox) -> set[tuple[str, str]]:
    return {(mail.to, mail.text.splitlines()[0]) for mail in mailbox.received}


def _judge(post: Post, mailbox: Mailbox, owed: set[tuple[str, str]]) -> None:
    copies: dict[tuple[str, str], list[str]] = defaultdict(list)
    for mail in mailbox.received:
        copies[mail.to, mail.text.splitlines()[0]].append(mail.message_id)
    for to, text in sorted(owed - copies.keys()):
        post.verdict.lost.append(f"{to}: {text!r} was never mailed")
    for (to, text), names in copies.items():
        post.repeats += len(names) - len(set(names))
        if len(set(names)) > 1:
            post.verdict.doubled.append(f"{to}: {text!r} was mailed under {len(set(names))} ids")
