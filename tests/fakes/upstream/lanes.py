"""The Responses API over one WebSocket: lanes, what each remembers, the hour's limit, steering.

A lane is a `stream_id`, or the default one without. Requests of a lane are answered in order, lanes side by side.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from tests.fakes.transport.exchange import ClientGone, Request
from tests.fakes.transport.websocket import WebSocket
from tests.fakes.upstream.answer import Answer, Order
from tests.fakes.upstream.lane_channel import LaneChannel
from tests.fakes.upstream.ledger import Ledger, Seen
from tests.fakes.upstream.model import Model, Refused
from tests.fakes.upstream.profile import Profile
from tests.fakes.upstream.responses import Context, Item, ResponseRequest, ResponseShape, socket_error
from tests.fakes.upstream.script import CallStarted
from tests.fakes.upstream.shape import Json

NAME = re.compile(r"[A-Za-z0-9_.-]{1,256}")
MOST_STEERS = 4
TELLS_S = 5.0
EXPIRED = socket_error(
    400,
    "websocket_connection_limit_reached",
    "Responses websocket connection limit reached (60 minutes). Create a new websocket connection to continue.",
)
Archive = MutableMapping[str, tuple[Item, ...]]  # responses that were stored, by id


class Steer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    type: str
    previous_response_id: str
    input: msgspec.Raw

    @property
    def items(self) -> tuple[Item, ...]:
        """Empty when it is no input."""
        try:
            given = msgspec.json.decode(self.input, type=str | tuple[Item, ...])
        except msgspec.DecodeError:
            return ()
        return (Item(role="user", content=given),) if isinstance(given, str) else given


class Envelope(msgspec.Struct, frozen=True):
    type: str = ""
    stream_id: msgspec.Raw = msgspec.Raw(b"null")


@dataclass(slots=True)
class Running:
    """A response this connection knows. `steers` are inputs accepted for what follows it."""

    id: str
    lane: Lane
    shape: ResponseShape
    answer: Answer | None = None
    state: str = "active"  # active | completed | ended
    steers: list[tuple[str, Steer]] = field(default_factory=list)


@dataclass(slots=True)
class Lane:
    """`latest` is the only response of this lane that can be continued without a store."""

    name: str | None
    queue: asyncio.Queue[tuple[ResponseRequest, str]] = field(default_factory=asyncio.Queue)
    busy: bool = False
    latest: tuple[str, tuple[Item, ...]] | None = None


class Session:
    """One connection from its upgrade to its end."""

    def __init__(
        self, socket: WebSocket, request: Request, model: Model, ledger: Ledger, archive: Archive
    ) -> None:
        self._socket = socket
        self._request = request
        self._model = model
        self._ledger = ledger
        self._archive = archive
        self._profile: Profile = model.profile
        self._lanes: dict[str | None, Lane] = {}
        self._known: dict[str, Running] = {}
        self._places = asyncio.Semaphore(self._profile.ws_in_flight)
        self._tasks: list[asyncio.Task[None]] = []
        self._count = 0

    async def run(self) -> None:
        """Until either side has had enough."""
        self._socket.exchange.resting = True
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                self._tasks.append(group.create_task(self._live()))
                while (text := await self._socket.receive()) is not None:
                    await self._take(text)
                for task in self._tasks:
                    task.cancel()
        finally:
            self._socket.over()

    async def expire(self) -> None:
        """The hour is over, whatever is going on."""
        self._ledger.socket_expired()
        await self.push(msgspec.json.encode(EXPIRED), close=1000)

    async def push(self, text: bytes, *, close: int = 0) -> None:
        """Something nobody asked for; then, with `close`, a close frame with that code."""
        try:
            if text:
                await self._socket.send_text(text)
            if close:
                await self._socket.close(close)
        except ClientGone:
            return

    async def tell(self, text: bytes, close: int) -> None:
        """The same, and the client has read it. Raises `TimeoutError`."""
        await self.push(text, close=close)
        if close:
            return
        with suppress(ClientGone):
            async with asyncio.timeout(TELLS_S):
                await self._socket.heard()

    async def _live(self) -> None:
        await asyncio.sleep(self._profile.ws_lifetime_s)
        await self.expire()

    async def _take(self, text: str) -> None:
        try:
            envelope = msgspec.json.decode(text, type=Envelope)
            match envelope.type:
                case "response.create":
                    self._create(text, self._lane_name(envelope))
                case "response.steer":
                    await self._steer(text)
                case unknown:
                    told = f"Unknown event type: '{unknown}'."
                    await self._complain(Refused(400, "invalid_value", told, "type"), None)
        except msgspec.DecodeError as error:
            await self._complain(Refused(400, "invalid_json", str(error)), None)
        except _RefusedOnLane as refused:
            await self._complain(refused, refused.lane)
        except Refused as refused:
            await self._complain(refused, None)

    def _lane_name(self, envelope: Envelope) -> str | None:
        """Raises `Refused`."""
        name = msgspec.json.decode(envelope.stream_id)
        if name is None:
            return None
        if not self._profile.ws_lanes:
            raise Refused(400, "unknown_parameter", "Unknown parameter: 'stream_id'.", "stream_id")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            told = "The 'stream_id' field must be 1 to 256 letters, digits, underscores, hyphens or periods."
            raise Refused(400, "invalid_stream_id", told, "stream_id")
        if name not in self._lanes and len(self._lanes.keys() - {None}) >= self._profile.ws_names:
            told = "This WebSocket connection has reached its maximum number of distinct stream IDs."
            raise _RefusedOnLane(400, "websocket_stream_limit_reached", told, "stream_id", lane=name)
        return name

    def _create(self, text: str, name: str | None) -> None:
        try:
            wanted = msgspec.json.decode(text, type=ResponseRequest)
        except msgspec.DecodeError as error:
            raise _RefusedOnLane(400, "invalid_type", str(error), lane=name) from error
        for field_name in ("stream", "background"):
            if f'"{field_name}"' in text and getattr(wanted, field_name):
                told = f"'{field_name}' is not used over WebSocket."
                raise _RefusedOnLane(400, "unsupported_parameter", told, field_name, lane=name)
        if wanted.conversation and wanted.previous_response_id:
            told = "'conversation' excludes 'previous_response_id'."
            raise _RefusedOnLane(400, "mutually_exclusive_parameters", told, lane=name)
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = Lane(name)
            self._tasks.append(self._group.create_task(self._work(lane)))
        if lane.busy or not lane.queue.empty():
            self._ledger.create_queued()
        lane.queue.put_nowait((wanted, text))
        self._socket.exchange.resting = False

    async def _complain(self, refused: Refused, lane: str | None) -> None:
        value = socket_error(refused.status, refused.code, str(refused), refused.param)
        if lane is not None:
            value["stream_id"] = lane
        self._ledger.create_refused()
        await self.push(msgspec.json.encode(value))

    async def _work(self, lane: Lane) -> None:
        try:
            while True:
                wanted, text = await lane.queue.get()
                lane.busy = True
                if self._places.locked():
                    self._ledger.create_queued()
                async with self._places:
                    following: ResponseRequest | None = wanted
                    while following is not None:
                        following = await self._respond(lane, following, text)
                lane.busy = False
                self._rest()
        except ClientGone:
            return  # the connection's reader ends the session

    def _rest(self) -> None:
        """Before anybody can learn of it: whoever waits for a count finds the connection idle."""
        idle = all(not lane.busy and lane.queue.empty() for lane in self._lanes.values())
        self._socket.exchange.resting = idle
        self._ledger.changed()

    async def _respond(self, lane: Lane, wanted: ResponseRequest, text: str) -> ResponseRequest | None:
        """One response; the successor's request when it was steered."""
        self._count += 1
        request = _message(self._request, self._count, text)
        with self._ledger.watching(request, self._socket.exchange) as seen:
            seen.stream_id = lane.name or ""
            seen.previous_response_id = wanted.previous_response_id or ""
            seen.input_items = len(wanted.items)
            seen.generate = wanted.generate
            await asyncio.sleep(self._profile.gateway_s)
            return await self._answer(lane, wanted, text, seen)

    async def _answer(
        self, lane: Lane, wanted: ResponseRequest, text: str, seen: Seen
    ) -> ResponseRequest | None:
        model = self._model
        rng = random.Random(f"{model.profile.seed}/{seen.serial}")
        plan = model.take_plan(text)
        dialect = plan.dialect or model.profile.dialect
        channel = LaneChannel(self._socket, lane.name, dialect, rng)
        try:
            model.serves(wanted.model)
            context = Context(wanted, self._before(wanted))
        except Refused as refused:
            seen.ended = f"refused {refused.status}"
            self._evict(lane, wanted)
            await channel.refuse(
                refused.status, socket_error(refused.status, refused.code, str(refused), refused.param), ""
            )
            return None
        rendered = context.rendered()
        shape = ResponseShape(f"resp_{rng.getrandbits(96):024x}", context, dialect, socket=True)
        order = Order(
            prompt=context.prompt(), plan=plan, profile=model.profile, rng=rng, generate=wanted.generate,
            thinking_s=model.begin(rendered, wanted.prompt_cache_key, plan, seen, rng),
            cached_tokens=seen.cached_tokens, prompt_tokens=seen.prompt_tokens,
        )  # fmt: skip
        answer = Answer(order, shape, channel, self._ledger, seen, model.released)
        running = self._known[shape.id] = Running(shape.id, lane, shape, answer)
        await answer.give(computed=lambda: model.remember(rendered, wanted.prompt_cache_key))
        if seen.ended:
            running.state = "ended"
            self._evict(lane, wanted)
            await self._return_steers(running)
            return None
        running.state = "completed"
        self._keep(lane, context, running)
        return await self._after_steers(running, wanted)

    def _before(self, wanted: ResponseRequest) -> tuple[Item, ...]:
        """What a request continues. Raises `Refused`."""
        wanted_id = wanted.previous_response_id
        if not wanted_id:
            return ()
        for lane in self._lanes.values():
            if lane.latest is not None and lane.latest[0] == wanted_id:
                queued = self._known[wanted_id].steers
                return (*lane.latest[1], *(item for _, steer in queued for item in steer.items))
        if wanted_id in self._archive:
            return self._archive[wanted_id]
        told = f"Previous response with id '{wanted_id}' not found."
        raise Refused(400, "previous_response_not_found", told, "previous_response_id")

    def _evict(self, lane: Lane, wanted: ResponseRequest) -> None:
        """A failed continuation on its own lane takes the parent with it; a failed fork does not."""
        if lane.latest is not None and lane.latest[0] == wanted.previous_response_id:
            lane.latest = None

    def _keep(self, lane: Lane, context: Context, running: Running) -> None:
        assert running.answer is not None
        items = context.continued(running.answer.reply)
        lane.latest = (running.id, items)
        if context.request.store:
            self._archive[running.id] = items
        self._model.remember(Context(context.request, items).rendered(), context.request.prompt_cache_key)

    async def _steer(self, text: str) -> None:
        try:
            steer = msgspec.json.decode(text, type=Steer)
        except msgspec.DecodeError as error:
            refused = Refused(400, "invalid_value", str(error))
            await self._complain(refused, None)
            return
        running = self._known.get(steer.previous_response_id)
        code = self._steer_refusal(running, steer)
        if code or running is None or running.answer is None:
            await self._steer_failed(running, steer, code)
            return
        steer_id = f"steer_{len(running.steers)}_{running.id.removeprefix('resp_')}"
        running.steers.append((steer_id, steer))
        await self._about_steer(running, "accepted", steer_id)
        running.answer.steer()

    def _steer_refusal(self, running: Running | None, steer: Steer) -> str:
        if running is None:
            return "response_not_found"
        if not self._profile.ws_steering:
            return "steering_not_supported"
        if not steer.items or any(item.role != "user" or not item.text for item in steer.items):
            return "invalid_input"
        if running.state != "active":
            return "response_already_completed" if running.state == "completed" else "response_not_active"
        return "too_many_pending_steers" if len(running.steers) >= MOST_STEERS else ""

    async def _after_steers(self, running: Running, wanted: ResponseRequest) -> ResponseRequest | None:
        """The successor's request, or word that it waits for a tool's result."""
        if not running.steers:
            return None
        assert running.answer is not None
        calls = [step for step in running.answer.reply.steps if isinstance(step, CallStarted)]
        if calls:
            needed = [
                {"type": "function_call_output", "call_id": call.call_id, "name": call.name} for call in calls
            ]
            for steer_id, _ in running.steers:
                await self._about_steer(
                    running, "pending", steer_id, reason="waiting_for_required_input", required_input=needed
                )
            return None
        items = tuple(item for _, steer in running.steers for item in steer.items)
        running.steers = []
        return msgspec.structs.replace(wanted, input=items, previous_response_id=running.id)

    async def _return_steers(self, running: Running) -> None:
        for steer_id, steer in running.steers:
            await self._steer_failed(running, steer, "response_not_active", steer_id)
        running.steers = []

    async def _about_steer(self, running: Running, what: str, steer_id: str, **more: object) -> None:
        steer = {"id": steer_id, "previous_response_id": running.id}
        value = running.shape.event(f"response.steer.{what}", steer=steer, **more)
        await self._send_on(running.lane.name, value)

    async def _steer_failed(
        self, running: Running | None, steer: Steer, code: str, steer_id: str = ""
    ) -> None:
        told: Json = {"previous_response_id": steer.previous_response_id, "input": steer.input}
        if steer_id:
            told["id"] = steer_id
        error = {"type": "invalid_request_error", "code": code, "message": f"Not steered: {code}."}
        if running is None:
            value: Json = {
                "type": "response.steer.failed",
                "sequence_number": 0,
                "error": error,
                "steer": told,
            }
            await self._send_on(None, value)
            return
        value = running.shape.event("response.steer.failed", error=error, steer=told)
        await self._send_on(running.lane.name, value)

    async def _send_on(self, lane: str | None, value: Json) -> None:
        await self.push(msgspec.json.encode(value if lane is None else {**value, "stream_id": lane}))


class _RefusedOnLane(Refused):
    def __init__(
        self, status: int, code: str, message: str, param: str | None = None, *, lane: str | None
    ) -> None:
        super().__init__(status, code, message, param)
        self.lane = lane


def _message(upgrade: Request, number: int, text: str) -> Request:
    """A message as the ledger knows requests: method WS, on the connection of its upgrade."""
    return Request(
        connection=upgrade.connection, number_on_connection=number, http=upgrade.http, method="WS",
        path=upgrade.path, headers=upgrade.headers, body=text.encode(),
    )  # fmt: skip
