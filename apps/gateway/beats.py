"""What the pings of a customer's line are answered with, and whether it may sleep."""

from __future__ import annotations

import time

from apps.gateway.heartbeat import Heartbeat, Rhythms, quiet_interval_s
from apps.gateway.sleep import Idleness
from apps.telemetry import instruments


class Beats:
    """Of one line of a site."""

    def __init__(self, heartbeat: Heartbeat, rhythms: Rhythms, site: str) -> None:
        self._heartbeat = heartbeat
        self._rhythms = rhythms
        self._site = site
        self._idleness = Idleness(time.monotonic())

    def begin(self) -> int:
        """The interval to be told with a welcome."""
        interval_s = self._quiet_s()
        self._heartbeat.begin(interval_s)
        return interval_s

    def asked(self) -> None:
        """The customer wants something: it shows how often that happens on this site."""
        self.heard()
        gap_s = self._heartbeat.request(time.monotonic())
        if gap_s is not None:
            self._rhythms.observe(self._site, gap_s)

    def heard(self) -> None:
        """Anything but a ping came."""
        self.busy()
        self._heartbeat.proven()

    def busy(self) -> None:
        """Something goes on: it does not sleep for a while."""
        self._idleness.busy(time.monotonic())

    def sleepy(self, *, hidden: bool) -> bool:
        """A ping came, which says whether the page is hidden: whether it was, and nothing went on, for long enough."""
        now = time.monotonic()
        self._idleness.seen(hidden=hidden, now=now)
        return self._idleness.long_enough(now)

    def ping(self) -> int | None:
        """The interval to tell with the pong; None where it stays as it is."""
        interval_s = self._heartbeat.ping(self._quiet_s())
        instruments.heartbeat_seconds.observe(self._heartbeat.interval_s)
        return interval_s

    def _quiet_s(self) -> int:
        return quiet_interval_s(self._rhythms.mean_s(self._site))
