"""How many tokens may be spent ahead of questions. Pure: the caller brings the clock (monotonic seconds)."""

from __future__ import annotations

from apps.engine.bucket import TokenBucket


class TokenBudget:
    """Holds a minute's tokens, with which it begins, and grows evenly back to them."""

    def __init__(self, tokens_a_minute: int) -> None:
        self.tokens_a_minute = tokens_a_minute
        self._bucket = TokenBucket(tokens_a_minute, tokens_a_minute / 60)

    def take(self, tokens: int, now: float) -> bool:
        """Takes so many, if there are so many."""
        return self._bucket.take(tokens, now)

    def give_back(self, tokens: int) -> None:
        """Of what was taken so many were not spent; fewer than 0: so many were, beyond it, and are owed."""
        self._bucket.add(tokens)
