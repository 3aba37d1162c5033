"""How many files this process may have open, of which every connection is one."""

from __future__ import annotations

import resource

# Beside the connections of clients: the database, Redis, model servers, the shop, other HTTP requests, the log.
RESERVED = 512
NEEDED = 1_024
# More clients than this one process does not carry.
WANTED = 16_384


class TooFewFiles(Exception):
    """The limit leaves no room for clients; the message says what to raise, and to what."""


def raise_limit() -> int:
    """Lifts the soft limit as far as it may go, and returns it. Raises `TooFewFiles` below `NEEDED`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    if soft < NEEDED:
        raise TooFewFiles(
            f"Only {soft} open files are allowed, {NEEDED} are needed: raise `ulimit -n` or LimitNOFILE."
        )
    return soft
