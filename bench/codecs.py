"""Which codec pays for what: `python -m bench.codecs --data DIR`, with the dialogues of `bench.compression`.

lz4 takes part where it is installed; the product does not need it.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

import msgspec
import zstandard

from apps.engine.context import Context
from apps.engine.types import Speaker
from apps.stores.codecs import unpacked
from apps.turns.kept.context_copies import written

ROUNDS = 300
Codec = tuple[str, Callable[[bytes], bytes], Callable[[bytes], bytes]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.codecs", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    print("| value | codec | bytes | packed | left | pack µs | unpack µs |\n|---|---|--:|--:|--:|--:|--:|")
    for language, texts in (
        ("English", _texts(data / "sgd/dev.jsonl.gz")),
        ("Chinese", _texts(data / "crosswoz/val.jsonl.gz")),
    ):
        for kilobytes in (1, 5, 20, 40):
            _rows(f"context, {language}, {kilobytes} kB", _context(texts, kilobytes * 1000))
        _rows(f"history page, {language}, 50 messages", msgspec.msgpack.encode(texts[:50]))
        _rows(f"record, {language}", msgspec.msgpack.encode({"name": "Mia Chen", "orders": texts[:4]}))


def _rows(name: str, value: bytes) -> None:
    for codec, pack, unpack in _codecs():
        packed = pack(value)
        print(
            f"| {name} | {codec} | {len(value):,} | {len(packed):,} | {len(packed) / len(value):.0%} "
            f"| {_us(pack, value):.0f} | {_us(unpack, packed):.0f} |",
            flush=True,
        )


def _codecs() -> Iterator[Codec]:
    for level in (1, 3):
        yield (
            f"zstd {level}",
            lambda value, level=level: zstandard.ZstdCompressor(level=level).compress(value),  # type: ignore[misc]
            lambda value: zstandard.ZstdDecompressor().decompress(value),
        )
    try:
        lz4 = importlib.import_module("lz4.frame")
    except ModuleNotFoundError:
        return
    yield "lz4", lz4.compress, lz4.decompress


def _us(act: Callable[[bytes], bytes], value: bytes) -> float:
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        act(value)
        taken.append(time.perf_counter() - start)
    return median(taken) * 1e6


def _context(texts: Sequence[str], size: int) -> bytes:
    """A copy as it is stored, unpacked, of about so many bytes."""
    context, told = Context(), 0
    for place, text in enumerate(texts, 1):
        context.add(place, Speaker.CUSTOMER if place % 2 else Speaker.ASSISTANT, text)
        told += len(text.encode())
        if told >= size:
            break
    return unpacked(written("epoch", context))


def _texts(file: Path) -> list[str]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [turn[1] for line in lines for turn in json.loads(line)["turns"]]


if __name__ == "__main__":
    main()
