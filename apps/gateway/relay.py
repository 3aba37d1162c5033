"""Errands to lines of other processes: there and back over the switchboard, each with a deadline."""

from __future__ import annotations

import asyncio

import msgspec

from apps.gateway.streams import NO_SUCH_LINE, Errand, Lines, Outcome
from apps.stores.ids import is_id, new_id
from apps.telemetry import instruments
from apps.wire.publish import Audience, Encoded, Relayed

ERRANDS = 500
ANSWER_S = 2.0
# Whether the other process lives shows at the end of a wait only: relayed polls wait shortly.
RELAYED_WAIT_S = 5.0

UNAVAILABLE = Outcome(503)


class _Question(msgspec.Struct, frozen=True, tag="question"):
    id: str
    asker: str
    errand: Errand


class _Answer(msgspec.Struct, frozen=True, tag="answer"):
    id: str
    outcome: Outcome


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Question | _Answer).decode


class Relay:
    """This process's ear for errands, and its mouth. Publish/subscribe may drop: then the asker is told 503."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._runtime = lines.office.runtime
        self._answers: dict[str, asyncio.Future[Outcome]] = {}
        self._questions = 0

    async def listen(self) -> None:
        """From the return on other processes are heard. The switchboard heals it with the rest."""
        await self._runtime.switchboard.opened.wait()
        await self._runtime.switchboard.join(Audience.PROCESS, self._runtime.process, self)

    async def run(self, errand: Errand) -> Outcome:
        """Carries the errand out, wherever its line lives."""
        process = self._lines.process_of(errand.line)
        if process == self._runtime.process:
            return await self._lines.carry_out(errand)
        if not is_id(process):
            return NO_SUCH_LINE
        outcome = await self._elsewhere(errand)
        instruments.relayed_errands.labels(str(outcome.status)).inc()
        return outcome

    async def _elsewhere(self, errand: Errand) -> Outcome:
        if len(self._answers) >= ERRANDS:
            return UNAVAILABLE
        if errand.wait_s is not None:
            errand = msgspec.structs.replace(errand, wait_s=min(errand.wait_s, RELAYED_WAIT_S))
        question = _Question(new_id(), self._runtime.process, errand)
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._answers[question.id] = answer
        self._tell(self._lines.process_of(errand.line), question)
        try:
            async with asyncio.timeout(ANSWER_S + (errand.wait_s or 0.0)):
                return await answer
        except TimeoutError:
            return UNAVAILABLE
        finally:
            del self._answers[question.id]

    def deliver(self, frame: Encoded) -> None:
        """A question or an answer, from the switchboard."""
        message = _decode(frame.binary)
        if isinstance(message, _Answer):
            if (waiting := self._answers.get(message.id)) and not waiting.done():
                waiting.set_result(message.outcome)
        elif self._questions < ERRANDS:
            self._questions += 1
            self._runtime.spawn(self._answer(message), "errand")

    async def _answer(self, question: _Question) -> None:
        try:
            outcome = await self._lines.carry_out(question.errand)
            self._tell(question.asker, _Answer(question.id, outcome))
        finally:
            self._questions -= 1

    def _tell(self, process: str, message: _Question | _Answer) -> None:
        self._runtime.switchboard.relay(Audience.PROCESS, process, Relayed("", _encode(message)))
