"""The articles of the demo shop Lantern, in English and Chinese."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from apps.accounts.models import Site
from apps.knowledge.demo.vectors import shipped_vectors
from apps.knowledge.embeddings import process_embedder
from apps.knowledge.ingestion import ingest
from apps.knowledge.models import Article

FOLDER = Path(__file__).parent


def load(site: Site) -> None:
    """Gives the site the demo's articles and ingests them here and now, so that the first question works.

    An article that exists keeps its edits. Takes under a second: the embeddings come with the texts.
    """
    known = shipped_vectors()
    for locale, slug, title, body in articles():
        article, _ = Article.objects.get_or_create(
            site=site, slug=slug, locale=locale, defaults={"title": title, "body": body}
        )
        ingest(article.pk, process_embedder(), known)


def articles() -> Iterator[tuple[str, str, str, str]]:
    """(locale, slug, title, body) of each: the file's name is the slug, its first line the title."""
    for locale in Article.Locale.values:
        for path in sorted((FOLDER / locale).glob("*.md")):
            first, _, body = path.read_text(encoding="utf-8").partition("\n")
            yield locale, path.stem, first.removeprefix("# ").strip(), body.strip()
