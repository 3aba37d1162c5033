"""The demo articles' embeddings, made beforehand: their passages take the model about 15 s on one core.

`manage.py embed_demo_articles` makes the file again after an article or the chunking has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

FILE = Path(__file__).parent / "vectors.npz"


def shipped_vectors() -> dict[str, bytes]:
    """Digest of a passage → its embedding as stored. Half precision on disk: the ranking does not see it."""
    with np.load(FILE, allow_pickle=False) as file:
        vectors = file["vectors"].astype("<f4")
        return {
            str(digest): vector.tobytes() for digest, vector in zip(file["digests"], vectors, strict=True)
        }


def ship_vectors(vectors: Mapping[str, bytes]) -> None:
    """Writes the file."""
    digests = sorted(vectors)
    rows = np.stack([np.frombuffer(vectors[digest], "<f4") for digest in digests])
    np.savez(FILE, digests=np.array(digests), vectors=rows.astype("<f2"))
