"""How tasks are started: in the group of the process's owner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

# Starts a task in the owner's group. An exception in it is logged and ends nothing else.
Spawn = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]
