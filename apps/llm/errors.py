"""What can go wrong between us and a model: one tree, each leaf with a stable `kind` for metrics, logs and the admin.

`elsewhere` says whether another endpoint may be asked the same. `rests` says whether the endpoint should be left
alone for a while (see `breaker`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar


class Stage(StrEnum):
    """Which deadline passed."""

    CONNECT = "connect"
    FIRST_DATA = "first_data"
    BETWEEN_DATA = "between_data"
    TURN = "turn"


class LlmError(Exception):
    """Base of every failure of an endpoint. `str()` is for the admin and the log; it holds no text of a customer."""

    kind: ClassVar[str] = "error"
    elsewhere: ClassVar[bool] = True
    rests: ClassVar[bool] = False

    @property
    def label(self) -> str:
        """The kind as a metric label: a closed set."""
        return self.kind


class ConnectFailed(LlmError):
    """No connection: refused, unreachable, or the name does not resolve."""

    kind = "connect"
    rests = True


class TlsFailed(LlmError):
    """The peer's certificate or handshake was refused."""

    kind = "tls"
    rests = True


class AuthRefused(LlmError):
    """401 or 403: the key is wrong, revoked, or may not use this model. An administrator must act."""

    kind = "auth"


class QuotaExhausted(LlmError):
    """The account has no credit left. An administrator must act."""

    kind = "quota"


class RateLimited(LlmError):
    """429. `retry_after_s` is what the server asked for, None when it did not say."""

    kind = "rate_limited"

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class RequestRefused(LlmError):
    """Any other 3xx or 4xx: this endpoint does not take this request (unknown model, too long, a bad field)."""

    kind = "refused"


class ChainLost(RequestRefused):
    """The server no longer knows the response that was to be continued. The same request in full will do."""


class UpgradeRefused(RequestRefused):
    """No WebSocket is to be had; HTTP may still do. `retry_after_s` is what the server asked for, if it did."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ServerFailed(LlmError):
    """5xx, or an error object inside a stream that began with 200. `retry_after_s` is what the server asked for."""

    kind = "server"
    rests = True

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Stalled(LlmError):
    """A deadline passed without progress of the model. Comments that keep a line alive are no progress."""

    kind = "stalled"

    def __init__(self, stage: Stage) -> None:
        super().__init__(f"no progress before the deadline: {stage.value}")
        self.stage = stage

    @property
    def label(self) -> str:
        return f"stalled_{self.stage.value}"


class BrokenStream(LlmError):
    """The stream was cut, or ended without saying that it had. `began` is False when not even headers came."""

    kind = "broken"

    def __init__(self, message: str, began: bool = True) -> None:
        super().__init__(message)
        self.began = began


class ConnectionExpired(BrokenStream):
    """The connection's time was over. A new one will do."""


class BadData(LlmError):
    """200, but what came is not the stream that was asked for."""

    kind = "bad_data"


class NoAnswer(LlmError):
    """A proper end without a word or an action, for example only reasoning within the token limit."""

    kind = "empty"


class ContentFiltered(LlmError):
    """The provider refused the content. Asking another provider the same would evade its verdict."""

    kind = "content_filter"
    elsewhere = False


class EndpointFull(LlmError):
    """All of our slots at this endpoint stayed taken until the deadline."""

    kind = "full"


# The kinds that only an administrator can mend: shown as a banner.
NEEDS_ADMIN = frozenset({AuthRefused.kind, QuotaExhausted.kind, TlsFailed.kind})


def needs_rest(error: LlmError) -> bool:
    """Whether the endpoint, not the request, is at fault in a way that waiting may cure."""
    if isinstance(error, Stalled):
        return error.stage in (Stage.CONNECT, Stage.FIRST_DATA)
    if isinstance(error, BrokenStream):
        return not error.began
    return error.rests


def is_unreachable(error: LlmError) -> bool:
    """Whether not even a connection came about."""
    return isinstance(error, ConnectFailed | TlsFailed) or (
        isinstance(error, Stalled) and error.stage is Stage.CONNECT
    )


def is_unreliable(error: LlmError) -> bool:
    """Whether it tells how often the endpoint fails, and not what it thinks of this request, this key or our haste."""
    return error.rests or isinstance(error, BrokenStream | Stalled | BadData)
