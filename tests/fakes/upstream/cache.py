"""The prefix cache of a model server: which blocks of a prompt it has computed before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from hashlib import blake2b

from tests.fakes.upstream.profile import Profile

BYTES_PER_TOKEN = 4
ROUTING_TOKENS = 256


def count_tokens(rendered: bytes) -> int:
    """Prompt tokens by size: exact enough for a model of time, and cheap."""
    return -(-len(rendered) // BYTES_PER_TOKEN)


class PrefixCache:
    """Hash chains of full blocks, as vLLM keeps them, on one or more replicas.

    A block is found only behind all blocks before it, so one changed byte early loses the rest. With several
    replicas a request is routed by its first 256 tokens and its key, as OpenAI does.
    """

    def __init__(self) -> None:
        self._replicas: dict[int, OrderedDict[bytes, float]] = {}

    def cached_tokens(self, rendered: bytes, key: str, profile: Profile, now: float) -> int:
        """How much of the prompt need not be computed. Hits are used, so they live on."""
        replica = self._replica(rendered, key, profile)
        hits = 0
        for block in _chain(rendered, profile.cache_block_tokens):
            used = replica.get(block)
            if used is None or now - used > profile.cache_ttl_s:
                break
            _use(replica, block, now)
            hits += 1
        tokens = hits * profile.cache_block_tokens
        return tokens if tokens >= profile.cache_minimum_tokens else 0

    def remember(self, rendered: bytes, key: str, profile: Profile, now: float) -> None:
        """Keeps every full block; a rest shorter than a block is never cached."""
        replica = self._replica(rendered, key, profile)
        for block in _chain(rendered, profile.cache_block_tokens):
            _use(replica, block, now)
        while len(replica) > profile.cache_blocks:
            replica.popitem(last=False)

    def clear(self) -> None:
        self._replicas.clear()

    def _replica(self, rendered: bytes, key: str, profile: Profile) -> OrderedDict[bytes, float]:
        number = 0
        if profile.cache_replicas > 1:
            route = blake2b(
                rendered[: ROUTING_TOKENS * BYTES_PER_TOKEN] + b"\0" + key.encode(), digest_size=8
            )
            number = int.from_bytes(route.digest(), "big") % profile.cache_replicas
        return self._replicas.setdefault(number, OrderedDict())


def _chain(rendered: bytes, block_tokens: int) -> Iterator[bytes]:
    size = block_tokens * BYTES_PER_TOKEN
    digest = b""
    for start in range(0, len(rendered) - size + 1, size):
        digest = blake2b(digest + rendered[start : start + size], digest_size=16).digest()
        yield digest


def _use(replica: OrderedDict[bytes, float], block: bytes, now: float) -> None:
    replica[block] = now
    replica.move_to_end(block)
