"""The worker's part: ingestion, and the sweep for what was not enqueued."""

from __future__ import annotations

from celery import shared_task

from apps.knowledge.embeddings import process_embedder
from apps.knowledge.ingestion import CLAIM_S, attempt, free_articles

_SWEPT_AT_ONCE = 20
_FOUND_AGAIN_S = 60  # what waited longer has been enqueued again by the sweep


@shared_task(soft_time_limit=CLAIM_S - 10, time_limit=CLAIM_S, expires=_FOUND_AGAIN_S)
def ingest_article(article_id: int) -> None:
    """Ingests one article if it is stale and nobody is at it; the longest takes about a minute. Idempotent."""
    attempt(article_id, process_embedder())


@shared_task
def ingest_stale() -> None:
    """Enqueues what is stale and free: the broker was down at the save, a worker died, an attempt failed."""
    for article_id in free_articles().order_by("updated_at").values_list("pk", flat=True)[:_SWEPT_AT_ONCE]:
        ingest_article.delay(article_id)
