"""Makes the embeddings that come with the demo articles."""

from __future__ import annotations

from django.core.management.base import BaseCommand

from apps.knowledge.chunking import chunk
from apps.knowledge.demo import articles
from apps.knowledge.demo.vectors import ship_vectors
from apps.knowledge.embeddings import MODEL, passage_digest, process_embedder, stored
from apps.knowledge.ranking import searched_text


class Command(BaseCommand):
    """Run after editing a demo article or the chunking; a test fails until then."""

    help = "Embed the demo articles and write apps/knowledge/demo/vectors.npz (about 15 s)."

    def handle(self, *args: object, **options: object) -> None:
        texts = [
            searched_text(title, section.heading, section.text)
            for _, _, title, body in articles()
            for section in chunk(body)
        ]
        vectors = process_embedder().embed_passages(texts)
        ship_vectors(
            {passage_digest(MODEL, text): stored(vector) for text, vector in zip(texts, vectors, strict=True)}
        )
        self.stdout.write(f"{len(texts)} passages")
