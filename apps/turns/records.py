"""What is kept of a finished turn: its waterfall, its tokens, its cost."""

from __future__ import annotations

import logging
from dataclasses import dataclass

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

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Record:
    """One part of a turn as it ended. `finished` is what the engine said of it, if it came so far."""

    job: Job
    opened: OpenedTurn
    end: wire.TurnEnd
    finished: Finished | None


def keep_record(runtime: Runtime, record: Record) -> None:
    """Counts, logs and hands on what was measured. Never waits."""
    opened, waterfall = record.opened, record.job.waterfall
    _measure(waterfall)
    logger.info(
        "turn %s part %d of %s: %s, %s, %s",
        opened.turn,
        opened.part,
        record.job.conversation,
        record.end.value,
        " ".join(f"{bar.name}={bar.ms:.1f}ms" for bar in waterfall.bars() if bar.ms),
        " ".join(f"{name}={value}" for name, value in waterfall.marks.items()),
    )
    runtime.ledger.keep(_row(record))


async def spent(site: SiteSettings) -> bool:
    """Whether the site's money for today is used up. No query where the site has no cap."""
    return site.capped and await in_database(cap_reached, site.id)


def last_record(conversation: str) -> Turn | None:
    """The newest finished turn. One query."""
    return Turn.objects.filter(conversation_id=conversation).order_by("-id").first()


def _measure(waterfall: Waterfall) -> None:
    for bar in waterfall.bars():
        if bar.name != "painted":
            instruments.stage_seconds.labels(bar.name).observe(bar.ms / 1000)
    if (added_ms := waterfall.added_ms()) is not None:
        instruments.added_seconds.observe(added_ms / 1000)
    instruments.facts.labels(waterfall.marks.get("profile", "none")).inc()


def _row(record: Record) -> Turn:
    usage, waterfall = record.finished.usage if record.finished else None, record.job.waterfall
    return Turn(
        turn=record.opened.turn,
        part=record.opened.part,
        handle=record.opened.fence,
        conversation_id=record.job.conversation,
        end=record.end.value,
        endpoint=record.finished.endpoint[:80] if record.finished else "",
        stages=[[bar.name, round(bar.start_ms, 2), round(bar.ms, 2)] for bar in waterfall.bars()],
        marks=dict(waterfall.marks),
        gaps=list(waterfall.gaps),
        ttft_ms=waterfall.ttft_ms(),
        added_ms=waterfall.added_ms(),
        painted_ms=waterfall.painted_ms,
        prompt_tokens=usage.prompt_tokens if usage else None,
        cached_tokens=usage.cached_tokens if usage else None,
        completion_tokens=usage.completion_tokens if usage else None,
    )
