"""What is kept of a finished turn: its waterfall, its tokens, its cost."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from django.db import DatabaseError

from apps.accounts.resident import SiteSettings
from apps.engine.events import Finished
from apps.llm.spend import cap_reached
from apps.stores.database import in_database
from apps.telemetry import instruments
from apps.telemetry.waterfall import Waterfall
from apps.turns.models import Turn
from apps.turns.runtime import Runtime
from apps.wire import protocol as wire
from apps.wire.publish import Audience

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Record:
    conversation: str
    turn: str
    part: int
    end: wire.TurnEnd
    waterfall: Waterfall
    finished: Finished | None


async def keep_record(runtime: Runtime, record: Record) -> None:
    """Stores the row and shows the waterfall to watching agents. A database that fails costs the row, not the turn."""
    for name, _, ms in record.waterfall.stages:
        instruments.stage_seconds.labels(name).observe(ms / 1000)
    instruments.facts.labels(record.waterfall.marks.get("profile", "none")).inc()
    frame = wire.Waterfall(
        conversation=record.conversation,
        turn=record.turn,
        stages=stages(record.waterfall),
        marks=dict(record.waterfall.marks),
    )
    runtime.switchboard.send(Audience.WATCHERS, record.conversation, frame)
    logger.info(
        "turn %s part %d of %s: %s, %s, %s",
        record.turn,
        record.part,
        record.conversation,
        record.end.value,
        " ".join(f"{name}={ms:.1f}ms" for name, _, ms in record.waterfall.stages),
        " ".join(f"{name}={value}" for name, value in record.waterfall.marks.items()),
    )
    try:
        await in_database(_store, record)
    except DatabaseError:
        logger.exception("the record of turn %s was not stored", record.turn)


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
    usage = record.finished.usage if record.finished else None
    first = next((start for name, start, _ in record.waterfall.stages if name == "first_frame"), None)
    Turn.objects.get_or_create(
        turn=record.turn,
        part=record.part,
        defaults={
            "conversation_id": record.conversation,
            "end": record.end.value,
            "endpoint": record.finished.endpoint[:80] if record.finished else "",
            "stages": [[s.name, s.start_ms, s.ms] for s in stages(record.waterfall)],
            "marks": record.waterfall.marks,
            "ttft_ms": first,
            "prompt_tokens": usage.prompt_tokens if usage else None,
            "cached_tokens": usage.cached_tokens if usage else None,
            "completion_tokens": usage.completion_tokens if usage else None,
        },
    )
