"""How many tokens may be spent ahead of questions. Pure: the caller brings the clock (monotonic seconds)."""

from __future__ import annotations


class TokenBudget:
    """Holds a minute's tokens, with which it begins, and grows evenly back to them."""

    def __init__(self, tokens_a_minute: int) -> None:
        self.tokens_a_minute = tokens_a_minute
        self._left = float(tokens_a_minute)
        self._at = 0.0

    def take(self, tokens: int, now: float) -> bool:
        """Takes so many, if there are so many."""
        grown = self._left + self.tokens_a_minute / 60 * max(0.0, now - self._at)
        self._left, self._at = min(grown, float(self.tokens_a_minute)), now
        if tokens > self._left:
            return False
        self._left -= tokens
        return True

    def give_back(self, tokens: int) -> None:
        """Of what was taken so many were not spent."""
        self._left = min(self._left + tokens, float(self.tokens_a_minute))
