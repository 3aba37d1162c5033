"""How fast one socket may speak. Pure: the caller brings the clock (monotonic seconds)."""

from __future__ import annotations

from apps.engine.bucket import TokenBucket

BURST_FRAMES = 100
FRAMES_A_SECOND = 20.0
# Frames refused in a row before the socket is closed: reading them costs too.
PATIENCE_FRAMES = 100


class Pace:
    """A bucket of frames that refills evenly."""

    def __init__(self, now: float) -> None:
        self._bucket = TokenBucket(BURST_FRAMES, FRAMES_A_SECOND, now)
        self._refused = 0

    def wait_s(self, now: float) -> float:
        """0 where a frame may be carried out, which takes it from the bucket; else the seconds until the next."""
        if not self._bucket.take(1, now):
            self._refused += 1
            return self._bucket.wait_s
        self._refused = 0
        return 0.0

    @property
    def lost_patience(self) -> bool:
        """Whether so many frames in a row were refused that the socket should be closed."""
        return self._refused >= PATIENCE_FRAMES
