"""The ORM from the async side: a bounded executor of our own, so that one slow query delays no socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import OperationalError, close_old_connections

P = ParamSpec("P")
T = TypeVar("T")

# One connection a thread; the PostgreSQL pool in settings leaves room for the log writer beside them.
THREADS = 6
# Above every limit that the database has been given itself (`chatsvc/settings`): only one that says nothing is later.
DEADLINE_S = 10.0
_executor = ThreadPoolExecutor(THREADS, thread_name_prefix="orm")


async def in_database(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs a synchronous selector or service on the ORM executor. Raises what it raises.

    A database that has not answered within 10 s is an `OperationalError` too. Neither that nor a cancelled caller
    stops the running query; its result is dropped.
    """

    def call() -> T:
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    try:
        async with asyncio.timeout(DEADLINE_S) as limit:
            return await asyncio.get_running_loop().run_in_executor(_executor, call)
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise OperationalError(f"the database did not answer within {DEADLINE_S:g} s") from error
