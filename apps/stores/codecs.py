"""How values are packed before they are stored: by what they are, and only where it pays.

The choice was measured by `python -m bench.codecs`. A packed value names its codec in its first byte.
"""

from __future__ import annotations

from enum import IntEnum

import zstandard

# What an honest value unpacks to at most; a broken or hostile one cannot ask for more.
MAX_UNPACKED_BYTES = 4 * 1024 * 1024
# Below, packing saves less than a network packet and costs as much as a big value.
FROM_BYTES = 1024
LEVEL = 1


class Codec(IntEnum):
    """The first byte of a packed value."""

    NONE = 0
    ZSTD = 1


class Kind(IntEnum):
    """What a value is."""

    CONTEXT = 0  # a conversation as the model reads it: text, 5 to 60 kB
    RECORD = 1  # a customer's profile, an answer, a frame: a few hundred bytes


class Undecodable(Exception):
    """The bytes are not what `packed` makes."""


def packed(kind: Kind, value: bytes) -> bytes:
    """The value with its codec before it; compressed where its kind and its size make that worth while."""
    if kind is Kind.CONTEXT and len(value) >= FROM_BYTES:
        return bytes([Codec.ZSTD]) + zstandard.ZstdCompressor(level=LEVEL).compress(value)
    return bytes([Codec.NONE]) + value


def unpacked(stored: bytes) -> bytes:
    """What was packed. Raises `Undecodable`."""
    match stored[:1]:
        case b"\x00":
            return stored[1:]
        case b"\x01":
            try:
                parameters = zstandard.get_frame_parameters(stored[1:])
                if parameters.content_size > MAX_UNPACKED_BYTES:
                    raise Undecodable("too big")
                return zstandard.ZstdDecompressor().decompress(stored[1:], max_output_size=MAX_UNPACKED_BYTES)
            except zstandard.ZstdError as error:
                raise Undecodable(str(error)) from error
        case _:
            raise Undecodable("an unknown codec")
