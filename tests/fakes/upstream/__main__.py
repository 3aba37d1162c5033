"""`python -m tests.fakes.upstream --port N --tls DIR --profile brief`: a process of its own.

Prints one JSON line when it is ready: `url`, `control` (see control_http) and `ca` (the file to trust).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from pathlib import Path

import msgspec

from tests.fakes.transport.listener import Listener
from tests.fakes.transport.tls import ALPN, Authority
from tests.fakes.upstream.control import Always
from tests.fakes.upstream.control_http import ControlServer
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.ledger import Ledger
from tests.fakes.upstream.profile import PROFILES, Profile
from tests.fakes.upstream.server import UpstreamServer


def main() -> None:
    options = _options()
    asyncio.run(_serve(options))


async def _serve(options: argparse.Namespace) -> None:
    authority = Authority(options.tls, ("http/1.1",) if options.http1 else ALPN) if options.tls else None
    upstream = UpstreamServer(_profile(options), certificates=authority, port=options.port)
    if options.plan:
        await upstream.obey(Always(msgspec.json.decode(options.plan, type=Plan)))
    control = Listener(ControlServer(upstream).serve, Ledger(), port=options.control_port)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, upstream.stop)

    def ready() -> None:
        line = {
            "url": f"{'https' if authority else 'http'}://127.0.0.1:{upstream.listener.port}",
            "control": f"http://127.0.0.1:{control.port}",
            "ca": str(authority.ca_file.resolve()) if authority else "",
        }
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    async with asyncio.TaskGroup() as group:
        await control.open(group)
        await upstream.run(ready)
        control.stop()


def _profile(options: argparse.Namespace) -> Profile:
    """A name, or JSON with the fields that differ from the default."""
    named = PROFILES.get(options.profile)
    profile = named or msgspec.json.decode(options.profile, type=Profile)
    changes = {"seed": options.seed, "rtt_s": options.rtt_ms / 1_000 if options.rtt_ms is not None else None}
    return profile.but(**{name: value for name, value in changes.items() if value is not None})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fakes.upstream", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--control-port", type=int, default=0)
    parser.add_argument("--tls", type=Path, metavar="DIR", help="serve TLS; the authority is kept in DIR")
    parser.add_argument("--http1", action="store_true", help="offer no HTTP/2")
    parser.add_argument("--profile", default="instant", help=f"{', '.join(PROFILES)}, or JSON")
    parser.add_argument("--plan", default="", help="JSON: how every request is answered")
    parser.add_argument("--rtt-ms", type=float)
    parser.add_argument("--seed", type=int)
    return parser.parse_args()


if __name__ == "__main__":
    main()
