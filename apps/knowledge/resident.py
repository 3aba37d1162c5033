"""What a web process keeps of each site's knowledge: one matrix and one word index, swapped whole."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from apps.engine.deadlines import within
from apps.engine.types import Passage
from apps.knowledge.embeddings import DIMENSIONS, MODEL, Embedder, EmbedderBusy, Vector, process_embedder
from apps.knowledge.models import Chunk
from apps.knowledge.ranking import Corpus, Entry
from apps.stores.resident import Resident
from apps.telemetry.instruments import knowledge_searches

logger = logging.getLogger(__name__)

# Many times what a question needs on an idle core, and within the stage of a turn; then words alone must do.
EMBED_DEADLINE_S = 0.25


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to, and what version was searched.

    `vector` is the question's; None where words alone decided, which is `worse`, or where there was nothing to search.
    """

    passages: tuple[Passage, ...]
    vector: Vector | None
    version: int
    worse: bool = False


class KnowledgeResident(Resident[Corpus]):
    """The searchable passages of every loaded site, and the search."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        super().__init__()
        self._embedder = embedder or process_embedder()
        # Words never queue behind the embedding model.
        self._ranking = ThreadPoolExecutor(1, thread_name_prefix="ranking")

    def load(self, site_id: str) -> Corpus:
        """The site's published passages. One query; the first call loads the model too."""
        self._embedder.load()
        return load_corpus(site_id)

    async def search(self, site_id: str, question: str, locale: str, limit: int = 4) -> Found:
        """The best passages for the question, best first; none of a site that is not loaded.

        About 15 ms on an idle core, nearly all of it the embedding on its thread, which the same words asked before
        spare. When that is late or the model is missing, the search goes by words alone; log and metric say so.
        """
        version = self.loaded_version(site_id)  # before the corpus: never newer than what is searched
        corpus = self.loaded(site_id)
        if corpus is None:
            return Found((), None, 0, worse=True)
        if not corpus.entries:
            return Found((), None, version)
        vector = await self._vector(question)
        knowledge_searches.labels(by="words" if vector is None else "meaning").inc()
        passages = await asyncio.get_running_loop().run_in_executor(
            self._ranking, corpus.passages, question, vector, locale, limit
        )
        return Found(passages, vector, version, worse=vector is None)

    def asked(self, question: str, found: Found) -> None:
        """What was searched for was asked, and not only drafted: the same words need not be embedded again."""
        if found.vector is not None:
            self._embedder.keep(question, found.vector)

    async def _vector(self, question: str) -> Vector | None:
        try:
            async with within(EMBED_DEADLINE_S):
                return await self._embedder.embed_query(question)
        except EmbedderBusy:
            logger.warning("searching by words alone: the embedding model is missing or busy")
        except TimeoutError:
            logger.warning(
                "searching by words alone: the embedding took over %.0f ms", EMBED_DEADLINE_S * 1000
            )
        return None


def load_corpus(site_id: str) -> Corpus:
    """The site's published passages. One query; a passage embedded by another model is found by words."""
    rows = list(
        Chunk.objects.filter(article__site_id=site_id, article__published=True)
        .select_related("article")
        .order_by("article_id", "position")
        .defer("article__body")
    )
    vectors = np.zeros((len(rows), DIMENSIONS), np.float32)
    for at, row in enumerate(rows):
        if row.model == MODEL and len(row.embedding) == 4 * DIMENSIONS:
            vectors[at] = np.frombuffer(row.embedding, "<f4")
    return Corpus([_entry(row) for row in rows], vectors)


def _entry(row: Chunk) -> Entry:
    article = row.article
    return Entry(article.slug, article.locale, article.title, row.heading, row.text, article.url)
