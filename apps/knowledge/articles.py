"""What an editor does to articles. Each service keeps the search in step, also with the broker down."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from django.db import transaction
from kombu.exceptions import OperationalError

from apps.accounts.models import bump
from apps.knowledge.models import Article
from apps.knowledge.tasks import ingest_article

logger = logging.getLogger(__name__)


def save_article(article: Article) -> None:
    """Saves, and has the worker ingest it after the commit. A dead broker delays that by the sweep's 10 s.

    An unpublished article leaves the search at once.
    """
    with transaction.atomic():
        article.save()
        if not article.published:
            bump(article.site_id, "knowledge_version")
        transaction.on_commit(lambda: _enqueue(article.pk))


def delete_articles(articles: Iterable[Article]) -> None:
    """Deletes; the articles leave the search with the version bumped in the same transaction."""
    gone = list(articles)
    with transaction.atomic():
        Article.objects.filter(pk__in=[article.pk for article in gone]).delete()
        for site_id in {article.site_id for article in gone}:
            bump(site_id, "knowledge_version")


def _enqueue(article_id: int) -> None:
    try:
        ingest_article.apply_async((article_id,), retry=False)
    except (OperationalError, OSError) as error:
        logger.warning("article %s waits for the sweep, the broker is away: %s", article_id, error)
