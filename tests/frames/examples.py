"""One or more examples of every server frame, and what a client makes of each."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import Any

from msgspec import Struct

from apps.gateway import events
from apps.wire import protocol as p
from apps.wire import server_frames as server
from apps.wire.texts import utf16_length

FOLDER = Path(__file__).parent

# Two code units a letter, a family joined by zero-width joiners, a flag, a combining accent.
EMOJI = "Hi 👩‍👩‍👧‍👦 🇨🇳 é 𝒳 — 订单1042"
ASSISTANT = p.Owner(kind=p.OwnerKind.ASSISTANT, name="Lumi", version=1)
KIM = p.Owner(kind=p.OwnerKind.AGENT, name="Kim", agent="a1", reason="button", team="t1", version=3)
QUEUE = p.Owner(kind=p.OwnerKind.QUEUE, reason="button", version=2)
QUESTION = p.Message(
    id="m1",
    place=1,
    author=p.Author.CUSTOMER,
    name="Mia",
    text="你好 " + EMOJI,
    at=1_750_000_000_000,
    client_id="c-1",
)
ANSWER = p.Message(
    id="m2", place=2, author=p.Author.ASSISTANT, name="Lumi", text="**On its way.**", at=1_750_000_001_000,
    state=p.MessageState.STOPPED, turn="u1", part=1,
    sources=(p.Source("Returns", "https://shop.example/r"), p.Source("FAQ")),
)  # fmt: skip
GONE = p.Message(
    id="m3",
    place=4,
    author=p.Author.AGENT,
    name="Kim",
    text="",
    at=1_750_000_002_000,
    state=p.MessageState.REMOVED,
)
LIVE = p.LiveTurn(turn="u2", part=2, handle=7, place=9, text=EMOJI, activity="order", subject="1042")
EVENTS = (
    server.Event("c", 1, p.EventKind.MESSAGE, 1_750_000_000_000, message=QUESTION),
    server.Event("c", 3, p.EventKind.MESSAGE, 1_750_000_001_000, message=ANSWER),
    server.Event("c", 5, p.EventKind.OWNER, 1_750_000_002_000, owner=KIM),
    server.Event("c", 6, p.EventKind.STATUS, 1_750_000_003_000, status=p.Status.RESOLVED),
)
PAGE = server.Page("c", "e1", 6, EVENTS, earlier=True)
EMPTY_PAGE = server.Page("c", "e1", 0, ())
HOURS = p.Availability(False, 1_750_050_000_000, ("09:00-17:30",) * 5 + ("", ""), "Asia/Shanghai")
SUMMARY = p.Summary("c0", p.Status.RESOLVED, "Thanks!", 1_740_000_000_000, ASSISTANT)
ORDER = p.OrderView(
    "1042", "in_transit", "2025-06-01", ("Trail lamp",), "€89.00", "DHL", "JD014", "2025-06-20"
)
PANEL = p.Panel("k", "Mia Chen", True, "mia@example.com", {"tier": "gold"}, (ORDER,), (SUMMARY,), "warm")
ROW = p.InboxRow(
    "c",
    6,
    "Mia Chen",
    True,
    p.Status.OPEN,
    KIM,
    "订单1042到哪了",
    "customer",
    1_750_000_000_000,
    "zh-hans",
    "s",
    1_750_000_000_000,
)
AGENT = p.AgentView("a1", "Kim", True, ("t1", "t2"))
STAGES = (p.Stage("rules", 0.4, 1.25), p.Stage("model", 2.0, 310.5))

EXAMPLES: tuple[server.ServerFrame, ...] = (
    *EVENTS,
    server.Event("c", 7, p.EventKind.MESSAGE_REMOVED, 1_750_000_004_000, message=GONE),
    server.Event("c", 8, p.EventKind.TURN_OPENED, 1_750_000_005_000, turn="u2", part=2),
    server.Event("c", 9, p.EventKind.HIDDEN, 1_750_000_006_000),
    server.Delta(7, 0, EMOJI),
    server.Delta(70_000, utf16_length(EMOJI), "\n", "c"),
    server.Pong(),
    server.Pong(heartbeat_s=45),
    server.Ack("c-1", 1, "c", 1_750_000_000_000),
    server.Refused(p.ErrorCode.TOO_LONG, "8,000 characters at most", "c-2", "message.send"),
    server.Refused(p.ErrorCode.SLOW_DOWN, "slow down", retry_after_s=1.5, conversation="c"),
    server.TurnStarted("c", "u2", 2, 7, 9),
    server.Activity(7, "order", "1042"),
    server.Activity(7, "thinking", conversation="c"),
    server.TurnEnded(7, p.TurnEnd.STOPPED, "c", 31),
    server.TurnEnded(7, p.TurnEnd.SUPERSEDED),
    server.Typing("c", p.Author.AGENT, "Kim"),
    server.Typing("c", p.Author.CUSTOMER, on=False),
    server.Queue("c", 3, p.Availability(True)),
    server.Welcome(
        "c", "k", "", False, p.Status.OPEN, ASSISTANT, EMPTY_PAGE, True, p.Availability(True), 30, 1_750_000_000,
    ),
    server.Welcome(
        "c", "k", "Mia Chen", True, p.Status.OPEN, QUEUE, PAGE, True, HOURS, 30, 1_750_000_000_000,
        LIVE, 2, True,
    ),
    server.History(PAGE, after=3, live=LIVE),
    server.History(EMPTY_PAGE, before=12),
    server.Conversations((SUMMARY,)),
    server.Inbox(AGENT, (ROW,), (AGENT, p.AgentView("a2", "Ana", False)), 30, 1_750_000_000_000),
    server.InboxChanged(ROW),
    server.Watching(ROW, PAGE, PANEL, LIVE, STAGES, {"profile": "warm"}, "u1", 1, 210.5, 9.25),
    server.Watching(ROW, PAGE, PANEL),
    server.Waterfall("c", "u2", STAGES),
    server.Waterfall("c", "u2", STAGES, {"profile": "cold"}, 2, 210.5, 9.25),
    server.PresenceChanged((AGENT,)),
    server.PanelChanged("c", p.Panel("k", "Visitor 12ab", False)),
)  # fmt: skip


def cases() -> dict[str, list[dict[str, Any]]]:
    """Frame type → its examples: the whole object, the JSON text and the MessagePack bytes in hexadecimal."""
    found: dict[str, list[dict[str, Any]]] = {}
    for frame in EXAMPLES:
        name = str(frame.__struct_config__.tag)
        case = {
            "frame": whole(frame),
            "json": server.encode_json(frame),
            "msgpack": server.encode_msgpack(frame).hex(),
        }
        found.setdefault(name, []).append(case)
    return found


def whole(value: Any) -> Any:
    """The value with every field present, as the client sees it."""
    if isinstance(value, Struct):
        fields = {name: whole(getattr(value, name)) for name in value.__struct_fields__}
        tag = value.__struct_config__.tag
        return fields if tag is None else {"type": tag, **fields}
    if isinstance(value, tuple):
        return [whole(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def table() -> dict[str, list[Any]]:
    """Code → type and field names: the shape of `TABLE` in static/js/wire/frames.js."""
    return {str(code): [name, list(fields)] for code, (name, fields) in server.fields_by_code().items()}


def stream() -> dict[str, Any]:
    """What a line over HTTP says: each event's text, and what a reader makes of it (null: nothing)."""
    delta = server.encode_json(server.Delta(handle=5, offset=0, text="Two\n\nparagraphs \u2028 🏮"))
    read = [
        (events.opened_event("p.secret"), "opened", '{"line": "p.secret"}'),
        (events.PADDING, "", None),
        (events.frame_event(delta), "", delta),
        (events.HEARTBEAT, "", None),
        (events.closed_event(1012, "restarting"), "closed", '{"code": 1012, "reason": "restarting"}'),
    ]
    return {"events": [{"text": text, "name": name, "data": data} for text, name, data in read]}


def texts() -> dict[str, str]:
    """File name → contents of every golden file."""
    files = {f"{name}.json": examples for name, examples in cases().items()}
    return {
        name: json.dumps(value, ensure_ascii=False, indent=1) + "\n"
        for name, value in {**files, "_table.json": table(), "_stream.json": stream()}.items()
    }
