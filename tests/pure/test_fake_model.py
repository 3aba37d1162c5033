"""The fake model's own arithmetic: tokens, the answer from the prompt, the prefix cache."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.upstream.cache import BYTES_PER_TOKEN, PrefixCache
from tests.fakes.upstream.profile import INSTANT
from tests.fakes.upstream.script import CallArguments, Filler, Prompt, Text, ToolCall, compose, tokenize

PROFILE = INSTANT.but(cache_block_tokens=4, cache_ttl_s=60.0)
BLOCK = 4 * BYTES_PER_TOKEN
NOTHING = Prompt(question="", lines=())


def blocks(letters: str) -> bytes:
    """A prompt of one block a letter."""
    return b"".join(letter.encode() * BLOCK for letter in letters)


@given(st.text())
def test_tokens_joined_are_the_text(text: str) -> None:
    assert "".join(tokenize(text)) == text
    assert compose(Text(text), NOTHING, random.Random(0)).text == text


@given(st.text(min_size=1), st.integers(1, 50))
def test_a_calls_pieces_joined_are_its_arguments(arguments: str, pieces: int) -> None:
    reply = compose(ToolCall(arguments=arguments, pieces=pieces), NOTHING, random.Random(0))
    parts = [step.text for step in reply.steps if isinstance(step, CallArguments)]
    assert "".join(parts) == arguments
    assert len(parts) <= pieces


@given(st.integers(0, 40), st.integers(1, 40))
def test_a_reply_never_exceeds_its_limit(tokens: int, limit: int) -> None:
    prompt = Prompt(question="", lines=(), max_tokens=limit)
    reply = compose(Filler(tokens), prompt, random.Random(0))
    assert reply.tokens == min(tokens, limit)
    assert reply.finish == ("length" if tokens > limit else "stop")


@pytest.mark.parametrize(
    ("known", "asked", "tokens"),
    [
        (["ABC"], "ABC", 12),
        (["ABC"], "ABD", 8),
        (["ABC"], "XBC", 0),
        (["ABC", "XYZ"], "XBC", 4),  # B and C were computed behind another A
        (["AB"], "ABC", 8),
        (["ABC"], "AB", 8),
        ([], "ABC", 0),
    ],
)
def test_a_block_is_found_only_behind_the_same_prefix(known: list[str], asked: str, tokens: int) -> None:
    cache = PrefixCache()
    for prompt in known:
        cache.remember(blocks(prompt), "", PROFILE, now=0.0)
    assert cache.cached_tokens(blocks(asked), "", PROFILE, now=1.0) == tokens


def test_a_rest_shorter_than_a_block_is_never_cached() -> None:
    cache = PrefixCache()
    prompt = blocks("A") + b"x" * (BLOCK - 1)
    cache.remember(prompt, "", PROFILE, now=0.0)
    assert cache.cached_tokens(prompt, "", PROFILE, now=0.0) == 4


def test_blocks_live_on_by_use_and_die_unused() -> None:
    cache = PrefixCache()
    cache.remember(blocks("AB"), "", PROFILE, now=0.0)
    assert cache.cached_tokens(blocks("A"), "", PROFILE, now=50.0) == 4
    assert cache.cached_tokens(blocks("AB"), "", PROFILE, now=100.0) == 4
    assert cache.cached_tokens(blocks("AB"), "", PROFILE, now=300.0) == 0


def test_the_least_recently_used_blocks_go_first() -> None:
    small = PROFILE.but(cache_blocks=2)
    cache = PrefixCache()
    for prompt in ("A", "B", "C"):
        cache.remember(blocks(prompt), "", small, now=0.0)
    assert [cache.cached_tokens(blocks(p), "", small, now=0.0) for p in "ABC"] == [0, 4, 4]


def test_short_hits_do_not_count_below_the_minimum() -> None:
    picky = PROFILE.but(cache_minimum_tokens=8)
    cache = PrefixCache()
    cache.remember(blocks("AB"), "", picky, now=0.0)
    assert cache.cached_tokens(blocks("AX"), "", picky, now=0.0) == 0
    assert cache.cached_tokens(blocks("AB"), "", picky, now=0.0) == 8
