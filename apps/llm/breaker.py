"""When an endpoint is left alone. Pure: the caller brings the clock (monotonic seconds)."""

from __future__ import annotations

from apps.llm.errors import (
    AuthRefused,
    LlmError,
    QuotaExhausted,
    RateLimited,
    ServerFailed,
    is_unreachable,
    needs_rest,
)

FAILURES = 3  # in a row, before the first rest
FIRST_REST_S = 10.0
LONGEST_REST_S = 60.0
# A wrong key stays wrong until somebody acts; looked at again once a minute, because it may be mended at the provider.
ADMIN_REST_S = 60.0
USUAL_RETRY_S = 5.0  # 429 without Retry-After
LONGEST_RETRY_S = 300.0
TRIAL_S = 5.0  # after a rest one request tries; the others wait this long for its outcome


class Breaker:
    """Rests after three failures in a row: 10 s, doubling to 60 s; at once, where the server says for how long.

    One trial ends or prolongs the rest.
    """

    def __init__(self) -> None:
        self._failures = 0
        self._next_rest_s = FIRST_REST_S
        self._rests_until = 0.0
        self._unreachable = False

    def allows(self, now: float) -> bool:
        """Whether a request may be sent now. Right after a rest it says yes to one caller at a time."""
        if now < self._rests_until:
            return False
        if self._rests_until:
            self._rests_until = now + TRIAL_S
        return True

    def rests(self, now: float) -> bool:
        """Whether no request may be sent now. Asking changes nothing."""
        return now < self._rests_until

    @property
    def sound(self) -> bool:
        """Whether it does not rest, and no trial is due that a question might need."""
        return not self._rests_until

    def succeeded(self) -> None:
        """The endpoint has spoken: all is forgotten."""
        self._failures = 0
        self._next_rest_s = FIRST_REST_S
        self._rests_until = 0.0
        self._unreachable = False

    def reached(self) -> None:
        """A connection could be made: forgets a rest whose reason was that none could."""
        if self._unreachable:
            self.succeeded()

    def failed(self, error: LlmError, now: float) -> None:
        """Takes note of a failure; faults of the request alone change nothing."""
        self._unreachable = is_unreachable(error)
        if isinstance(error, RateLimited):
            self._rest(now, min(error.retry_after_s or USUAL_RETRY_S, LONGEST_RETRY_S))
        elif isinstance(error, AuthRefused | QuotaExhausted):
            self._rest(now, ADMIN_REST_S)
        elif needs_rest(error):
            self._failures += 1
            rest_s = min(
                (error.retry_after_s if isinstance(error, ServerFailed) else None) or 0.0, LONGEST_RETRY_S
            )
            if self._failures >= FAILURES:
                rest_s = max(rest_s, self._next_rest_s)
                self._next_rest_s = min(self._next_rest_s * 2, LONGEST_REST_S)
            if rest_s:
                self._rest(now, rest_s)

    def _rest(self, now: float, seconds: float) -> None:
        self._rests_until = now + seconds
