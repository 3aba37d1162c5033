"""The only writer of durable events: one thread a process that commits whatever has piled up, at once.

There is no waiting window: what arrives during a commit is the next batch. A command is acknowledged after
its transaction committed.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.db import InterfaceError, OperationalError, connection, transaction

from apps.conversations import statements
from apps.conversations.commands import Appended, Command, LogUnavailable, Refusal
from apps.conversations.decisions import decide
from apps.conversations.state import Change, Stored
from apps.telemetry import instruments
from apps.wire.protocol import ErrorCode

logger = logging.getLogger(__name__)

BATCH_COMMANDS = 256
QUEUE_COMMANDS = 10_000
COMMAND_DEADLINE_S = 10.0
# A statement that was begun in time may still be under way then; one that the database never answers is let go.
ANSWER_DEADLINE_S = COMMAND_DEADLINE_S + 2.0
RETRY_PAUSE_S = 0.05
LONGEST_RETRY_PAUSE_S = 0.5

OnCommitted = Callable[[Appended], None]


@dataclass(slots=True)
class _Item:
    command: Command
    then: OnCommitted | None
    otherwise: Callable[[], None] | None
    future: asyncio.Future[Appended]
    deadline: float
    outcome: Appended | Exception | None = field(default=None)


class Log:
    """Appends commands from the event loop. `on_committed` runs on the loop for each command, in commit order."""

    def __init__(self, on_committed: OnCommitted) -> None:
        self._on_committed = on_committed
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
        self._closed = False
        self._batch_since: float | None = None  # monotonic; None while the thread waits for commands
        self._refusing_since: float | None = None  # monotonic; None once the database has taken a batch again
        self._refused_at = 0.0

    @property
    def behind_s(self) -> float:
        """For how long the database has taken nothing of what it was given; 0 where nothing waits.

        What it refused counts for 10 s more: between two messages that it refuses it is no better.
        """
        now = time.monotonic()
        refusing = now - self._refused_at < COMMAND_DEADLINE_S
        since = (self._refusing_since if refusing else None) or self._batch_since
        return now - since if since is not None else 0.0

    def open(self) -> None:
        """Starts the writer thread. Call it on the loop that will append."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def close(self) -> None:
        """Commits what is queued, then ends the thread. Later appends raise `LogUnavailable`."""
        self._closed = True
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join, COMMAND_DEADLINE_S)

    async def append(
        self,
        command: Command,
        then: OnCommitted | None = None,
        otherwise: Callable[[], None] | None = None,
    ) -> Appended:
        """Returns once the command is stored.

        `then` runs right behind `on_committed`, before any later commit is told, and also when the caller was
        cancelled or has given up meanwhile: what must follow from the commit belongs there. Where the command was not
        stored `otherwise` runs, as late.

        Raises `Refusal` when it may not be carried out, `LogUnavailable` when the database did not take it in
        10 s or more than 10,000 commands wait. A cancelled caller does not undo the write.
        """
        if self._closed or self._loop is None or self._queue.qsize() >= QUEUE_COMMANDS:
            if otherwise is not None:
                otherwise()
            raise LogUnavailable(f"the writer is closed, or behind by {QUEUE_COMMANDS:,} commands")
        deadline = time.monotonic() + COMMAND_DEADLINE_S
        item = _Item(command, then, otherwise, self._loop.create_future(), deadline)
        self._queue.put(item)
        try:
            async with asyncio.timeout(ANSWER_DEADLINE_S):
                return await asyncio.shield(item.future)
        except TimeoutError as error:
            raise LogUnavailable("the database has not answered; it may be stored yet") from error

    def _run(self) -> None:
        """The writer's thread: commits what has piled up, until it is closed."""
        while (first := self._queue.get()) is not None:
            batch, more = self._drain(first)
            self._batch_since = time.monotonic()
            try:
                self._write(batch)
            except Exception:
                # The thread's boundary: without it every later append would wait for ever.
                logger.exception("the writer failed on a batch of %d", len(batch))
            self._batch_since = None
            self._settle(batch)
            if not more:
                break
        connection.close()

    def _drain(self, first: _Item) -> tuple[list[_Item], bool]:
        batch = [first]
        while len(batch) < BATCH_COMMANDS:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                break
            if item is None:
                return batch, False
            batch.append(item)
        return batch, True

    def _write(self, batch: Sequence[_Item]) -> None:
        """Gives every item an outcome. A lost connection is retried: repeats are recognised by their key."""
        started, pause_s = time.monotonic(), RETRY_PAUSE_S
        pending = list(batch)
        while pending:
            try:
                _commit(pending)
            except (OperationalError, InterfaceError) as error:
                self._note_refusal()
                connection.close()
                pending = _still_in_time(pending, error)
                time.sleep(pause_s)
                pause_s = min(pause_s * 2, LONGEST_RETRY_PAUSE_S)
            except Exception as error:
                # One command that cannot be stored, whatever it holds, takes no other with it.
                if len(pending) > 1:
                    for item in pending:
                        self._write([item])
                else:
                    logger.exception("command %s failed", type(pending[0].command).__name__)
                    pending[0].outcome = LogUnavailable(repr(error))
                return
            else:
                self._refusing_since = None
                instruments.commit_seconds.observe(time.monotonic() - started)
                instruments.commit_batch.observe(len(batch))
                return

    def _note_refusal(self) -> None:
        now = time.monotonic()
        if self._refusing_since is None or now - self._refused_at >= COMMAND_DEADLINE_S:
            self._refusing_since = now
        self._refused_at = now

    def _settle(self, batch: Sequence[_Item]) -> None:
        assert self._loop is not None  # noqa: S101 - open() set it before the thread started
        try:
            self._loop.call_soon_threadsafe(self._deliver, batch)
        except RuntimeError:
            # The loop is closed: the process is going down and nobody waits any more.
            logger.info("%d commands were stored after their loop closed", len(batch))

    def _deliver(self, batch: Sequence[_Item]) -> None:
        for item in batch:
            if isinstance(item.outcome, Appended):
                _tell(self._on_committed, item.outcome)
                if item.then is not None:
                    _tell(item.then, item.outcome)
            elif item.otherwise is not None:
                item.otherwise()
            if item.future.done():
                continue
            if isinstance(item.outcome, Appended):
                item.future.set_result(item.outcome)
            else:
                item.future.set_exception(item.outcome or LogUnavailable("no outcome"))
                # Nobody may be waiting: a refused command is not a lost exception.
                item.future.exception()


def _tell(listener: OnCommitted, appended: Appended) -> None:
    try:
        listener(appended)
    except Exception:
        # What is committed is committed: a listener's defect must not keep the batch's other acknowledgements back.
        logger.exception("a commit in %s was not followed up", appended.standing.conversation)


def _commit(items: Sequence[_Item]) -> None:
    if connection.connection is None:
        statements.wait_shortly()
    with transaction.atomic():
        commands = [item.command for item in items]
        states = statements.lock_conversations(command.conversation for command in commands)
        stored = statements.find_stored(commands)
        changes: list[Change] = []
        outcomes: list[Appended | Refusal] = []
        for command in commands:
            state = states.get(command.conversation)
            if state is None:
                outcomes.append(Refusal(ErrorCode.NOT_FOUND, "there is no such conversation"))
                continue
            key = statements.message_key(command)
            try:
                decided = decide(state, command, stored.get(key) if key else None)
            except Refusal as refusal:
                outcomes.append(refusal)
                continue
            if isinstance(decided, Change):
                changes.append(decided)
                _remember(stored, key, decided)
                outcomes.append(decided.result())
            else:
                outcomes.append(decided)
        if changes:
            statements.store(changes)
    for item, outcome in zip(items, outcomes, strict=True):
        item.outcome = outcome


def _remember(stored: dict[statements.Key, Stored], key: statements.Key | None, change: Change) -> None:
    """A second copy of the same command in one batch must find the first."""
    for event in change.events:
        if key is not None and event.message is not None:
            m = event.message
            stored[key] = Stored(m.id, change.state.id, m.text, event.seq, m.at)


def _still_in_time(items: Sequence[_Item], error: Exception) -> list[_Item]:
    now, why = time.monotonic(), str(error).partition("\n")[0]  # a hint may follow
    logger.warning("the database refused a batch of %d: %s", len(items), why)
    for item in items:
        if item.deadline <= now:
            item.outcome = LogUnavailable(why)
    return [item for item in items if item.deadline > now]
