"""`python -m tests.fakes.shop --port N --key K`: a process of its own. Prints its URL when it is ready."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from datetime import UTC, datetime

from tests.fakes.shop.catalog import lantern
from tests.fakes.shop.server import ShopServer


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fakes.shop", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--key", required=True)
    options = parser.parse_args()
    asyncio.run(_serve(options.port, options.key))


async def _serve(port: int, key: str) -> None:
    shop = ShopServer(key, lantern(datetime.now(UTC).date()), port=port)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, shop.stop)

    def ready() -> None:
        sys.stdout.write(f"http://127.0.0.1:{shop.listener.port}\n")
        sys.stdout.flush()

    await shop.run(ready)


if __name__ == "__main__":
    main()
