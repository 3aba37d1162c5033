"""Turns an article into searchable passages. The only writer of `Chunk`."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from apps.accounts.models import bump
from apps.knowledge.chunking import Section, chunk
from apps.knowledge.embeddings import EmbedderBusy, PassageEmbedder, passage_digest, stored
from apps.knowledge.models import Article, Chunk
from apps.knowledge.ranking import searched_text

logger = logging.getLogger(__name__)

_HEADING_CHARACTERS = 500
CLAIM_S = 120  # the time limit of an attempt
_LONGEST_WAIT_S = 600


@dataclass(frozen=True, slots=True)
class _Embedded:
    model: str
    embedding: bytes


def stale_articles() -> QuerySet[Article]:
    """Articles whose newest text is not searched yet."""
    return Article.objects.exclude(ingested_revision=F("revision"))


def free_articles() -> QuerySet[Article]:
    """Stale articles that nobody works on and that have not just failed."""
    return stale_articles().filter(Q(ingest_after=None) | Q(ingest_after__lt=timezone.now()))


def attempt(article_id: int, embedder: PassageEmbedder) -> None:
    """Ingests the article unless another worker is at it. Idempotent.

    A failure is raised, and keeps the sweep away for 10 s, twice as long each time, at most 10 minutes. An attempt
    counts as failed from its begin, so that an article that kills its workers waits as long as one that raises.
    """
    free = free_articles().filter(pk=article_id)
    failures = free.values_list("ingest_failures", flat=True).first()
    if failures is None:
        return
    wait_s = _wait_s(failures)
    claimed_until = timezone.now() + timedelta(seconds=max(CLAIM_S, wait_s))
    claim = free.filter(ingest_failures=failures)
    if not claim.update(ingest_after=claimed_until, ingest_failures=failures + 1):
        return
    try:
        ingest(article_id, embedder)
    except Exception:
        # An edit meanwhile has taken the claim away and is not postponed.
        claimed = Article.objects.filter(pk=article_id, ingest_after=claimed_until)
        claimed.update(ingest_after=timezone.now() + timedelta(seconds=wait_s))
        raise


def _wait_s(failures: int) -> float:
    longest_s = min(_LONGEST_WAIT_S, 10 * 2.0 ** min(failures, 10))
    return longest_s * random.uniform(0.8, 1.2)  # noqa: S311 - jitter


def ingest(article_id: int, embedder: PassageEmbedder, known: Mapping[str, bytes] | None = None) -> bool:
    """Replaces the article's passages by those of its present text, in one small transaction.

    Idempotent: False if nothing was stale, or if a newer save overtook this. Passages whose digest the article
    already has, or that `known` (digest → embedding) brings, are not embedded again. An unpublished article
    has no passages. Without a model passages are stored to be found by words. Bumps `knowledge_version`.
    """
    article = stale_articles().filter(pk=article_id).first()
    if article is None:
        return False
    sections = chunk(article.body) if article.published else ()
    digests = [
        passage_digest(embedder.name, searched_text(article.title, section.heading, section.text))
        for section in sections
    ]
    embedded = _embed(article, sections, digests, embedder, known or {})
    rows = [
        Chunk(
            article=article,
            position=position,
            heading=section.heading[:_HEADING_CHARACTERS],
            text=section.text,
            embedding=embedded[digest].embedding,
            model=embedded[digest].model,
            digest=digest,
        )
        for position, (section, digest) in enumerate(zip(sections, digests, strict=True))
    ]
    return _replace(article, rows)


def _embed(
    article: Article,
    sections: Sequence[Section],
    digests: Sequence[str],
    embedder: PassageEmbedder,
    known: Mapping[str, bytes],
) -> dict[str, _Embedded]:
    """An embedding for each digest: kept, brought along, or made now. Outside any transaction."""
    kept = article.chunks.filter(model=embedder.name, digest__in=digests).values_list("digest", "embedding")
    have = {digest: bytes(embedding) for digest, embedding in kept}
    have |= {digest: known[digest] for digest in digests if digest in known}
    missing = {
        digest: searched_text(article.title, section.heading, section.text)
        for section, digest in zip(sections, digests, strict=True)
        if digest not in have
    }
    found = {digest: _Embedded(embedder.name, embedding) for digest, embedding in have.items()}
    try:
        vectors = embedder.embed_passages(list(missing.values()))
    except EmbedderBusy:
        logger.warning("article %s is ingested without embeddings: no model here", article.pk)
        return found | {digest: _Embedded("", b"") for digest in missing}
    return found | {
        digest: _Embedded(embedder.name, stored(vector))
        for digest, vector in zip(missing, vectors, strict=True)
    }


def _replace(article: Article, rows: list[Chunk]) -> bool:
    with transaction.atomic():
        current = stale_articles().filter(pk=article.pk, revision=article.revision)
        if not current.update(ingested_revision=article.revision, ingest_failures=0, ingest_after=None):
            return False
        article.chunks.all().delete()
        Chunk.objects.bulk_create(rows, batch_size=100)
        bump(article.site_id, "knowledge_version")
    return True
