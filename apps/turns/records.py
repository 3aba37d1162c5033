"""What is kept of a finished turn: its waterfall, its tokens, its cost."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from django.db import DatabaseError

from apps.accounts.resident import SiteSettings
from apps.conversations.commands import OpenedTurn
from apps.engine.events import Finished
from apps.llm.spend import cap_reached
from apps.stores.database import in_database
from apps.telemetry import instruments
from apps.telemetry.waterfall import Waterfall
from apps.turns.job import Job
from apps.turns.models import Turn
from apps.turns.runtime import Runtime
from apps.wire import protocol as wire
from apps.wire.publish import Audience

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Record:
    """One part of a turn as it ended. `finished` is what the engine said of it, if it came so far."""

    job: Job
    opened: OpenedTurn
    end: wire.TurnEnd
    finished: Finished | None


async def keep_record(runtime: Runtime, record: Record) -> None:
    """Stores the row and shows the waterfall to watching agents. A database that fails costs the row, not the turn."""
    conversation, opened, waterfall = record.job.conversation, record.opened, record.job.waterfall
    for name, _, ms in waterfall.stages:
        instruments.stage_seconds.labels(name).observe(ms / 1000)
    instruments.facts.labels(waterfall.marks.get("profile", "none")).inc()
    frame = wire.Waterfall(
        conversation=conversation, turn=opened.turn, stages=stages(waterfall), marks=dict(waterfall.marks)
    )
    runtime.switchboard.send(Audience.WATCHERS, conversation, frame)
    logger.info(
        "turn %s part %d of %s: %s, %s, %s",
        opened.turn,
        opened.part,
        conversation,
        record.end.value,
        " ".join(f"{name}={ms:.1f}ms" for name, _, ms in waterfall.stages),
        " ".join(f"{name}={value}" for name, value in waterfall.marks.items()),
    )
    try:
        await in_database(_store, record)
    except DatabaseError:
        logger.exception("the record of turn %s was not stored", opened.turn)


async def spent(site: SiteSettings) -> bool:
    """Whether the site's money for today is used up. No query where the site has no cap."""
    return site.capped and await in_database(cap_reached, site.id)


def stages(waterfall: Waterfall) -> tuple[wire.Stage, ...]:
    return tuple(
        wire.Stage(name=name, start_ms=round(start, 2), ms=round(ms, 2))
        for name, start, ms in waterfall.stages
    )


def last_waterfall(conversation: str) -> tuple[tuple[wire.Stage, ...], dict[str, str]]:
    """The stages and marks of the newest finished turn. One query."""
    row = Turn.objects.filter(conversation_id=conversation).order_by("-id").first()
    if row is None:
        return (), {}
    return tuple(wire.Stage(name=name, start_ms=start, ms=ms) for name, start, ms in row.stages), row.marks


def _store(record: Record) -> None:
    usage, waterfall = record.finished.usage if record.finished else None, record.job.waterfall
    first = next((start for name, start, _ in waterfall.stages if name == "first_frame"), None)
    Turn.objects.get_or_create(
        turn=record.opened.turn,
        part=record.opened.part,
        defaults={
            "conversation_id": record.job.conversation,
            "end": record.end.value,
            "endpoint": record.finished.endpoint[:80] if record.finished else "",
            "stages": [[s.name, s.start_ms, s.ms] for s in stages(waterfall)],
            "marks": waterfall.marks,
            "ttft_ms": first,
            "prompt_tokens": usage.prompt_tokens if usage else None,
            "cached_tokens": usage.cached_tokens if usage else None,
            "completion_tokens": usage.completion_tokens if usage else None,
        },
    )
