"""docs/protocol.md says what the code says: every frame, field, word, code and limit, and examples that parse."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from enum import Enum
from typing import Any, get_args

import msgspec
import pytest
from msgspec import Struct, inspect

from apps.conversations.selectors import (
    INBOX_ASSISTANTS_ROWS,
    INBOX_PEOPLE_ROWS,
    INBOX_RESOLVED_ROWS,
    SUMMARIES,
)
from apps.gateway.connections import LINES_A_PERSON
from apps.gateway.heartbeat import ANSWER_S, DEFAULT_S, HIDDEN_TIMER_S, LONGEST_S, QUIET_S
from apps.gateway.http import BODY_DEADLINE_S, HEARTBEAT_S
from apps.gateway.outbound import QUEUED_FRAMES
from apps.gateway.pace import BURST_FRAMES, FRAMES_A_SECOND, PATIENCE_FRAMES
from apps.gateway.rates import ADDRESS_RATE, PERSON_RATE, WORKSPACE_RATE
from apps.gateway.sleep import IDLE_S
from apps.gateway.streams import POLL_GAP_S, POLL_WAIT_S
from apps.inbox.presence import LEASE_S
from apps.telemetry.waterfall import STAGES
from apps.wire import client_frames as client
from apps.wire import protocol
from apps.wire import server_frames as server
from chatsvc.environment import BASE_DIR
from chatsvc.server import WAITING_FRAMES

PAGE = (BASE_DIR / "docs" / "protocol.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^##+ (.+?)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))

CUSTOMERS, AGENTS = get_args(client.CustomerFrame), get_args(client.AgentFrame)
CLIENT_FRAMES = tuple(dict.fromkeys((*CUSTOMERS, *AGENTS)))
SERVER_FRAMES = tuple(server.CODES)
# Page lies with the server's frames, since it holds events.
SHAPES = tuple(
    value
    for value in {**vars(protocol), **vars(server)}.values()
    if isinstance(value, type) and issubclass(value, Struct) and value.__struct_config__.tag is None
    and value is not Struct
)  # fmt: skip
WORDS = tuple(
    value
    for value in vars(protocol).values()
    if isinstance(value, type) and issubclass(value, Enum) and value.__members__ and issubclass(value, str)
)
LIMITS = {
    name: value
    for name, value in vars(protocol).items()
    if name.isupper() and isinstance(value, int | float) and not name.startswith("_")
}

Rows = list[list[str]]


def rows(section: str) -> Rows:
    """The cells of the section's table, without its head."""
    lines = [line for line in SECTIONS[section].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def examples(section: str) -> list[str]:
    blocks = re.findall(r"```json\n(.*?)```", SECTIONS[section], re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def heading(frame: type[Struct]) -> str:
    return f"`{frame.__struct_config__.tag}`"


def described(struct: type[Struct]) -> Rows:
    """The first three cells that each field must have: name, type, default."""
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return [[f"`{field.name}`", type_name(field.type), default(field)] for field in info.fields]


def type_name(kind: inspect.Type) -> str:
    names: dict[type[inspect.Type], Callable[[Any], str]] = {
        inspect.StrType: lambda _: "string",
        inspect.IntType: lambda _: "integer",
        inspect.FloatType: lambda _: "number",
        inspect.BoolType: lambda _: "boolean",
        inspect.NoneType: lambda _: "null",
        inspect.EnumType: lambda enum: str(enum.cls.__name__),
        inspect.StructType: lambda struct: str(struct.cls.__name__),
        inspect.VarTupleType: lambda items: f"list of {type_name(items.item_type)}",
        inspect.DictType: lambda m: f"map of {type_name(m.key_type)} to {type_name(m.value_type)}",
        inspect.UnionType: lambda union: " or ".join(type_name(one) for one in union.types),
    }
    return names[type(kind)](kind)


def default(field: inspect.Field) -> str:
    if field.required:
        return "–"
    made = field.default_factory() if callable(field.default_factory) else field.default
    return f"`{json.dumps(msgspec.to_builtins(made))}`"


@pytest.mark.parametrize("frame", [*SERVER_FRAMES, *CLIENT_FRAMES], ids=heading)
def test_a_frame_is_described_field_by_field(frame: type[Struct]) -> None:
    assert [row[:3] for row in rows(heading(frame))] == described(frame)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: str(shape.__name__))
def test_a_shape_is_described_field_by_field(shape: type[Struct]) -> None:
    assert [row[:3] for row in rows(shape.__name__)] == described(shape)


def test_the_page_describes_no_frame_that_does_not_exist() -> None:
    known = {heading(frame) for frame in (*SERVER_FRAMES, *CLIENT_FRAMES)}
    assert {name for name in SECTIONS if name.startswith("`")} == known


@pytest.mark.parametrize("frame", SERVER_FRAMES, ids=heading)
def test_an_example_of_the_server_is_what_it_would_send(frame: type[Struct]) -> None:
    assert examples(heading(frame))
    for example in examples(heading(frame)):
        read: Any = msgspec.json.decode(example, type=frame)
        # Also refuses a field that does not exist, and a default that is written out.
        assert json.loads(server.encode_json(read)) == json.loads(example)


@pytest.mark.parametrize("frame", CLIENT_FRAMES, ids=heading)
def test_an_example_of_a_client_is_taken_from_whom_the_page_says_and_refused_from_others(
    frame: type[Struct],
) -> None:
    section = SECTIONS[heading(frame)]
    senders = (("customers", client.parse_customer), ("agents", client.parse_agent))
    said = re.search(r"^From (customers|agents|customers and agents)\.", section, re.MULTILINE)
    assert said
    assert examples(heading(frame))
    for example in examples(heading(frame)):
        assert set(json.loads(example)) <= {"type", *frame.__struct_fields__}
        for sender, parse in senders:
            if sender in said[1]:
                assert type(parse(example)) is frame
            else:
                with pytest.raises(client.FrameError) as refused:
                    parse(example)
                assert refused.value.code is protocol.ErrorCode.UNKNOWN_TYPE


@pytest.mark.parametrize("words", WORDS, ids=lambda words: str(words.__name__))
def test_every_word_of_a_set_is_explained(words: type[Enum]) -> None:
    section = "Error codes" if words is protocol.ErrorCode else words.__name__
    explained = [(row[0], bool(row[1])) for row in rows(section)]
    assert sorted(explained) == sorted((f"`{word.value}`", True) for word in words)


def test_every_close_code_says_when_it_comes_and_what_a_client_does() -> None:
    told = {(int(row[0]), row[1]) for row in rows("Close codes") if all(row)}
    assert told == {(code.value, code.name) for code in protocol.CloseCode}


def test_every_limit_is_told_with_its_value() -> None:
    told = {row[0]: float(row[1]) for row in rows("Limits") if all(row)}
    assert told == LIMITS


def test_limits_kept_elsewhere_are_told_too() -> None:
    assert f"{QUEUED_FRAMES:,} frames waited" in SECTIONS["Close codes"]
    assert f"{WAITING_FRAMES} frames of its own" in SECTIONS["Close codes"]
    assert f"{PATIENCE_FRAMES} came too soon in a row" in SECTIONS["Close codes"]
    told = f"more than {FRAMES_A_SECOND:.0f} frames a second, after a burst of {BURST_FRAMES}"
    assert told in SECTIONS["Error codes"]
    assert f"older than {LEASE_S} s" in " ".join(SECTIONS["Heartbeat"].split())
    heartbeat = " ".join(SECTIONS["Heartbeat"].split())
    assert (
        f"{QUIET_S[0]} s at least and {QUIET_S[1]} s at most, {DEFAULT_S} s while nothing is known"
        in heartbeat
    )
    assert f"with each ping, up to {LONGEST_S} s" in heartbeat
    assert f"less than {HIDDEN_TIMER_S} s, and {ANSWER_S} s more" in heartbeat
    assert f"nothing was said for {IDLE_S / 60:.0f} minutes" in heartbeat
    assert f"more than {LINES_A_PERSON} lines" in SECTIONS["Close codes"]
    rates = ", ".join(f"{a_second:.0f} after {burst:,}" for burst, a_second in (ADDRESS_RATE, WORKSPACE_RATE))
    assert (
        f"{PERSON_RATE[1]:.0f} a second after a burst of {PERSON_RATE[0]}, {rates}" in SECTIONS["Error codes"]
    )
    assert f"first ({INBOX_PEOPLE_ROWS:,} at most)" in SECTIONS["`inbox`"]
    assert f"({INBOX_ASSISTANTS_ROWS} at most), then the last {INBOX_RESOLVED_ROWS}" in SECTIONS["`inbox`"]
    assert f"{SUMMARIES} at most" in SECTIONS["`conversations`"]


def test_the_limits_of_lines_over_http_are_told() -> None:
    section = SECTIONS["Without a WebSocket"]
    assert f"until {POLL_GAP_S:.0f} s pass without another poll" in section
    assert f"nothing after {POLL_WAIT_S:.0f} s" in section
    assert f"every {HEARTBEAT_S:.0f} s" in section
    assert f"took {BODY_DEADLINE_S:.0f} s" in section


def test_the_codes_and_the_bytes_of_messagepack_are_told() -> None:
    cells = [cell for row in rows("Forms") for cell in row if cell]
    told = dict(zip(cells[::2], cells[1::2], strict=True))
    assert told == {str(code): heading(frame) for frame, code in server.CODES.items()}
    found = re.search(r"The delta `(.+?)` as MessagePack.*?```text\n(.+?)\n```", SECTIONS["Forms"], re.DOTALL)
    assert found
    delta = msgspec.json.decode(found[1], type=server.Delta)
    assert server.encode_msgpack(delta).hex(" ") == found[2]


def test_both_subprotocols_are_named() -> None:
    assert all(f"`{name}`" in SECTIONS["Opening"] for name in protocol.SUBPROTOCOLS)


def test_every_stage_of_a_turn_is_named() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in (BASE_DIR / "apps").rglob("*.py"))
    measured = set(re.findall(r'(?:\.stage|\.waiting|\.add|\.listener)\(\s*"(\w+)"', source))
    told = next(row[3] for row in rows("Stage") if row[0] == "`name`")
    assert tuple(re.findall(r"`(\w+)`", told)) == STAGES
    assert measured <= set(STAGES)
