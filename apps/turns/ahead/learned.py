"""What a site's finished conversations teach of the next request: learned by the worker, resident in web processes."""

from __future__ import annotations

import logging
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Final

from django.db import transaction
from django.db.models import Q

from apps.accounts.models import Site, bump
from apps.conversations.models import Conversation, Message
from apps.engine.dialogue import Move
from apps.engine.observing import answered, asked
from apps.engine.prediction import Predictor, UnknownVersion
from apps.stores.resident import Resident
from apps.turns.models import LearnedRequests, Turn
from apps.wire.protocol import Author, MessageState, Status

logger = logging.getLogger(__name__)

FINISHED_AFTER: Final = timedelta(minutes=30)
FEWEST_CONVERSATIONS: Final = 20
NEWEST_CONVERSATIONS: Final = 2_000
# About 1 MB as JSON, which takes 10 ms to load.
MAX_TABLES: Final = 6_000
# A question, its turn, its answer, and another question: what has fewer events teaches nothing.
_FEWEST_EVENTS: Final = 4
_READ_AT_ONCE: Final = 100
# A customer who was away longer did not read the answer meanwhile.
_LONGEST_PAUSE_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class Learned:
    """`pause_s` is how long a customer usually reads and writes: the median from an answer to the next message."""

    predictor: Predictor
    pause_s: float


class LearnedResident(Resident[Learned | None]):
    """Of the sites that have learned something, whether they act on it or not."""

    def load(self, site_id: str) -> Learned | None:
        """One query, and up to 10 ms to parse."""
        row = LearnedRequests.objects.filter(site_id=site_id).first()
        if row is None:
            return None
        try:
            return Learned(Predictor.load(zlib.decompress(row.predictor)), row.pause_s)
        except UnknownVersion as version:
            logger.warning("site %s: the predictor has version %s; it will be learned anew", site_id, version)
            return None


def sites_that_prefetch() -> list[str]:
    """One query."""
    return list(Site.objects.filter(prefetch=True).values_list("pk", flat=True))


def learn(site_id: str) -> bool:
    """Learns the site's predictor from its newest finished conversations and has the web processes load it.

    False when there are too few, or none that the stored one has not seen. 0.5 ms a message, beside two queries for
    a hundred conversations.
    """
    finished = _finished(site_id)
    if len(finished) < FEWEST_CONVERSATIONS:
        return False
    newest_at = max(last_at for _, last_at in finished)
    if LearnedRequests.objects.filter(
        site_id=site_id, newest_at=newest_at, conversations=len(finished)
    ).exists():
        return False
    predictor, pauses = Predictor(max_tables=MAX_TABLES), []
    for said in _read([conversation for conversation, _ in finished]):
        predictor.learn(_moves(said))
        pauses += _pauses_s(said)
    values = {
        "predictor": zlib.compress(predictor.dump()),
        "pause_s": median(pauses) if pauses else 0.0,
        "conversations": len(finished),
        "newest_at": newest_at,
    }
    with transaction.atomic():
        LearnedRequests.objects.update_or_create(site_id=site_id, defaults=values)
        bump(site_id, "learned_version")
    return True


def moves_of(conversation: str) -> list[Move]:
    """Everything said in a running conversation, as the predictor reads it. Two queries."""
    return [move for said in _read([conversation]) for move in _moves(said)]


@dataclass(frozen=True, slots=True)
class _Said:
    author: str
    text: str
    articles: tuple[str, ...]
    rules: tuple[str, ...]
    at: datetime


def _finished(site_id: str) -> list[tuple[str, datetime]]:
    """(conversation, its last message's time), oldest first."""
    rested = Q(status=Status.RESOLVED) | Q(last_at__lt=datetime.now(UTC) - FINISHED_AFTER)
    rows = Conversation.objects.filter(rested, site_id=site_id, turn="", last_seq__gte=_FEWEST_EVENTS)
    newest = rows.order_by("-last_at").values_list("pk", "last_at")[:NEWEST_CONVERSATIONS]
    return list(newest)[::-1]


def _read(conversations: Sequence[str]) -> Iterator[list[_Said]]:
    """Each conversation's messages in order, in the order asked for."""
    for start in range(0, len(conversations), _READ_AT_ONCE):
        some = conversations[start : start + _READ_AT_ONCE]
        marks = dict(Turn.objects.filter(conversation__in=some).values_list("turn", "marks"))
        rows = Message.objects.filter(conversation__in=some).exclude(state=MessageState.INTERRUPTED)
        said: dict[str, list[_Said]] = defaultdict(list)
        for row in rows.order_by("conversation", "place"):
            articles = tuple(url or title for title, url in row.sources)
            rules = marks.get(row.turn, {}).get("rules", "")
            met = tuple(rules.split(", ")) if rules else ()
            said[row.conversation_id].append(_Said(row.author, row.text, articles, met, row.created_at))
        yield from (said[conversation] for conversation in some)


def _moves(said: Sequence[_Said]) -> Iterator[Move]:
    for message, following in pairwise((*said, None)):
        if message is None:
            continue
        if message.author != Author.CUSTOMER:
            yield answered(message.author, message.articles)
        elif following is not None and following.author == Author.ASSISTANT:
            yield asked(message.text, following.articles, following.rules)
        else:
            yield asked(message.text)


def _pauses_s(said: Iterable[_Said]) -> list[float]:
    pauses = [
        (after.at - before.at).total_seconds()
        for before, after in pairwise(said)
        if before.author != Author.CUSTOMER and after.author == Author.CUSTOMER
    ]
    return [pause for pause in pauses if pause <= _LONGEST_PAUSE_S]
