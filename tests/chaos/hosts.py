"""Where web processes live: each in a network namespace of its own where the system has them, else all on this one."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from chatsvc.embedded.processes import tied_to
from tests.chaos.links import Way

# What is sent to a neighbour of this name arrives nowhere, and nobody is told.
_NOBODY = "02:00:00:00:00:01"


class Host:
    """A namespace and the cable to it. Lost packets are lost by the kernel: TCP sends them again once it is healed."""

    def __init__(self, number: int, holder: subprocess.Popen[bytes]) -> None:
        """Raises `OSError` or `CalledProcessError` where that cannot be had."""
        self.enter = ("nsenter", "--target", str(holder.pid), "--net")
        near, far = (f"chaos{holder.pid}{end}" for end in "nf")
        net = f"10.231.{random.SystemRandom().randrange(256)}"
        ours, self.address = f"{net}.{4 * number + 1}", f"{net}.{4 * number + 2}"
        _ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", str(holder.pid))
        _ip("address", "add", f"{ours}/30", "dev", near)
        _ip("link", "set", near, "up")
        self._ip("address", "add", f"{self.address}/30", "dev", far)
        self._ip("link", "set", far, "up")
        self._ip("link", "set", "lo", "up")
        self._up = (_ip, self.address, near, self._ip("-brief", "link", "show", far).split()[2])
        self._down = (self._ip, ours, far, _ip("-brief", "link", "show", near).split()[2])
        self.heal()

    def lose(self, *ways: Way) -> None:
        """Nothing arrives any more, this way or both."""
        for way in ways:
            self._neighbour(way, _NOBODY)

    def heal(self) -> None:
        for way in Way:
            self._neighbour(way, "")

    def _neighbour(self, way: Way, address: str) -> None:
        ip, who, interface, true_address = self._up if way is Way.UP else self._down
        ip(
            "neighbour",
            "replace",
            who,
            "lladdr",
            address or true_address,
            "dev",
            interface,
            "nud",
            "permanent",
        )

    def _ip(self, *words: str) -> str:
        return _run(*self.enter, "ip", *words)


@contextmanager
def namespaces(count: int) -> Iterator[list[Host]]:
    """So many hosts, gone with their last process; none where this system or this user has no namespaces."""
    holders: list[subprocess.Popen[bytes]] = []
    try:
        try:
            for _ in range(count):
                holders.append(_holder())
            hosts = [Host(number, holder) for number, holder in enumerate(holders)]
        except (OSError, subprocess.CalledProcessError):
            hosts = []
        yield hosts
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()


def _holder() -> subprocess.Popen[bytes]:
    """A process that does nothing but keep a namespace."""
    command = ["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=tied_to(os.getpid()))
    assert holder.stdout
    if not holder.stdout.readline():
        raise OSError("no network namespace can be had here")
    return holder


def _ip(*words: str) -> str:
    return _run("ip", *words)


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=10).stdout
