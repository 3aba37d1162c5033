"""Articles become searchable: by the worker, by the sweep, at once in the demo."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.utils import timezone

from apps.accounts.models import Site
from apps.knowledge import demo
from apps.knowledge.articles import delete_articles, save_article
from apps.knowledge.embeddings import DIMENSIONS, MODEL, Embedder, EmbedderBusy, Vector
from apps.knowledge.ingestion import attempt, free_articles, ingest, stale_articles
from apps.knowledge.models import Article, Chunk
from apps.knowledge.resident import KnowledgeResident

pytestmark = pytest.mark.django_db


class CountingEmbedder:
    """Stands in for the model: any text is the first axis. Remembers what it was asked."""

    name = MODEL

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        self.asked += texts
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        vectors[:, 0] = 1.0
        return vectors


class NoEmbedder(Embedder):
    """A machine that cannot run the model."""

    def load(self) -> bool:
        return False


@pytest.fixture
def article(site: Site) -> Article:
    body = "## Washing\n\nBy hand.\n\n## Drying\n\nIn air."
    return Article.objects.create(site=site, slug="care", title="Care", body=body)


def version(site: Site) -> int:
    return Site.objects.get(pk=site.pk).knowledge_version


def passages(article: Article) -> list[tuple[int, str, str]]:
    return list(article.chunks.values_list("position", "heading", "text"))


def test_ingestion_cuts_embeds_and_announces(site: Site, article: Article) -> None:
    assert ingest(article.pk, CountingEmbedder())
    assert passages(article) == [(0, "Washing", "By hand."), (1, "Drying", "In air.")]
    chunk = article.chunks.get(position=0)
    assert chunk.model == MODEL
    assert np.frombuffer(chunk.embedding, "<f4").tolist() == [1.0] + [0.0] * (DIMENSIONS - 1)
    assert version(site) == 2
    assert not stale_articles().exists()


def test_a_second_ingestion_of_the_same_text_does_nothing(site: Site, article: Article) -> None:
    embedder = CountingEmbedder()
    ingest(article.pk, embedder)
    rows = list(Chunk.objects.values_list("pk", flat=True))
    assert not ingest(article.pk, embedder)
    assert list(Chunk.objects.values_list("pk", flat=True)) == rows
    assert version(site) == 2


def test_an_edit_replaces_the_passages_and_embeds_only_what_changed(article: Article) -> None:
    ingest(article.pk, CountingEmbedder())
    article.body = article.body.replace("In air.", "In the shade.")
    article.save()
    embedder = CountingEmbedder()
    assert ingest(article.pk, embedder)
    assert passages(article) == [(0, "Washing", "By hand."), (1, "Drying", "In the shade.")]
    assert embedder.asked == ["Care\nDrying\nIn the shade."]


def test_an_edit_during_ingestion_wins(site: Site, article: Article) -> None:
    class Interrupting(CountingEmbedder):
        def embed_passages(self, texts: Sequence[str]) -> Vector:
            newer = Article.objects.get(pk=article.pk)
            newer.body = "Newer."
            newer.save()
            return super().embed_passages(texts)

    assert not ingest(article.pk, Interrupting())
    assert passages(article) == []
    assert version(site) == 1
    assert ingest(article.pk, CountingEmbedder())
    assert passages(article) == [(0, "", "Newer.")]


def test_without_a_model_an_article_is_found_by_its_words(site: Site, article: Article) -> None:
    ingest(article.pk, NoEmbedder())
    assert set(article.chunks.values_list("model", "embedding")) == {("", b"")}
    with pytest.raises(EmbedderBusy):
        NoEmbedder().embed_passages(["x"])


def test_ingestion_costs_the_same_queries_for_few_and_for_many_passages(
    site: Site, django_assert_num_queries: Any
) -> None:
    for count in (1, 40):
        body = "\n\n".join(f"## H{n}\n\nText {n}." for n in range(count))
        row = Article.objects.create(site=site, slug=f"a{count}", title="A", body=body)
        # Read, known embeddings, savepoint, mark, old passages (select), insert, bump, release.
        with django_assert_num_queries(8):
            ingest(row.pk, CountingEmbedder())
        assert row.chunks.count() == count


def test_saving_enqueues_after_the_commit_and_needs_no_broker(
    site: Site, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True) as callbacks:
        row = Article(site=site, slug="new", title="New", body="Text.")
        save_article(row)
    assert len(callbacks) == 1
    assert list(free_articles()) == [row]  # whatever became of the message, the sweep finds it


def test_unpublishing_and_deleting_announce_at_once(site: Site, article: Article) -> None:
    ingest(article.pk, CountingEmbedder())
    article.published = False
    save_article(article)
    assert version(site) == 3
    ingest(article.pk, CountingEmbedder())
    assert passages(article) == []
    delete_articles([article])
    assert version(site) == 5
    assert not Article.objects.exists()


def test_a_worker_that_works_on_an_article_keeps_others_away(article: Article) -> None:
    Article.objects.update(ingest_after=timezone.now() + timedelta(minutes=1))
    attempt(article.pk, CountingEmbedder())
    assert passages(article) == []
    article.save()  # an edit is free again
    attempt(article.pk, CountingEmbedder())
    assert len(passages(article)) == 2
    article.refresh_from_db()
    assert article.ingest_after is None


def test_a_failed_attempt_waits_before_the_next_and_changes_nothing(site: Site, article: Article) -> None:
    class Failing(CountingEmbedder):
        def embed_passages(self, texts: Sequence[str]) -> Vector:
            raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        attempt(article.pk, Failing())
    assert list(stale_articles()) == [article]
    assert not free_articles().exists()
    assert (passages(article), version(site)) == ([], 1)
    article.refresh_from_db()
    assert article.ingest_failures == 1
    Article.objects.update(ingest_after=timezone.now() - timedelta(seconds=1))
    attempt(article.pk, CountingEmbedder())
    article.refresh_from_db()
    assert (len(passages(article)), article.ingest_failures) == (2, 0)


def test_an_attempt_that_never_ended_counts_as_a_failure(article: Article) -> None:
    class Killed(CountingEmbedder):
        def embed_passages(self, texts: Sequence[str]) -> Vector:
            raise KeyboardInterrupt

    waits = []
    for _ in range(7):
        with pytest.raises(KeyboardInterrupt):
            attempt(article.pk, Killed())
        assert not free_articles().exists()
        article.refresh_from_db()
        assert article.ingest_after is not None
        waits.append((article.ingest_after - timezone.now()).total_seconds())
        Article.objects.update(ingest_after=timezone.now() - timedelta(seconds=1))
    assert article.ingest_failures == 7
    assert waits[0] == pytest.approx(120, abs=5)
    assert waits[6] > 400


def test_the_demo_is_ingested_at_once_and_keeps_edits(site: Site) -> None:
    demo.load(site)
    assert Article.objects.filter(locale="en").count() == Article.objects.filter(locale="zh").count() == 13
    assert set(Article.objects.filter(locale="en").values_list("slug")) == set(
        Article.objects.filter(locale="zh").values_list("slug")
    )
    assert not stale_articles().exists()
    assert set(Chunk.objects.values_list("model", flat=True)) == {MODEL}
    Article.objects.filter(slug="returns", locale="en").update(title="Edited")
    demo.load(site)
    assert Article.objects.get(slug="returns", locale="en").title == "Edited"


def search(resident: KnowledgeResident, site: Site, question: str) -> list[tuple[str, bool]]:
    found = asyncio.run(resident.search(site.pk, question, "en"))
    return [(passage.title, passage.answerable) for passage in found.passages]


def test_a_resident_searches_what_it_has_loaded(site: Site, django_assert_num_queries: Any) -> None:
    demo.load(site)
    resident = KnowledgeResident()
    assert search(resident, site, "Can I return worn boots?") == []
    newest = version(site)
    with django_assert_num_queries(1):
        resident.refresh(site.pk, newest)
    assert resident.loaded_version(site.pk) == newest
    assert search(resident, site, "Can I return worn boots?")[0] == ("Boots you have worn", True)
    assert search(resident, site, "穿过的靴子能退吗")[0] == ("穿过的靴子", True)
    resident.forget(site.pk)
    assert (resident.loaded_version(site.pk), search(resident, site, "Can I return worn boots?")) == (0, [])


def test_a_resident_never_goes_back_to_an_older_version(site: Site, article: Article) -> None:
    ingest(article.pk, CountingEmbedder())
    resident = KnowledgeResident(NoEmbedder())
    resident.refresh(site.pk, 7)
    delete_articles([article])
    resident.refresh(site.pk, 6)
    assert (resident.loaded_version(site.pk), len(search(resident, site, "washing"))) == (7, 1)
    resident.refresh(site.pk, 8)
    assert search(resident, site, "washing") == []


def test_sites_do_not_see_each_others_articles(site: Site, article: Article) -> None:
    other = Site.objects.create(workspace=site.workspace, name="Other")
    ingest(article.pk, CountingEmbedder())
    resident = KnowledgeResident(NoEmbedder())
    for each in (site, other):
        resident.refresh(each.pk, 1)
    assert search(resident, site, "washing") == [("Care", True)]
    assert search(resident, other, "washing") == []


def test_without_a_model_the_search_goes_by_words(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    demo.load(site)
    resident = KnowledgeResident(NoEmbedder())
    resident.refresh(site.pk, 1)
    assert search(resident, site, "Can I return worn boots?")[0] == ("Boots you have worn", True)
    assert "words alone" in caplog.text


def test_where_there_is_nothing_to_search_no_model_is_missed(site: Site) -> None:
    resident = KnowledgeResident(NoEmbedder())
    resident.refresh(site.pk, 1)
    found = asyncio.run(resident.search(site.pk, "Can I return worn boots?", "en"))
    assert (found.passages, found.version, found.worse) == ((), 1, False)
    demo.load(site)
    resident.refresh(site.pk, 2)
    assert asyncio.run(resident.search(site.pk, "Can I return worn boots?", "en")).worse
