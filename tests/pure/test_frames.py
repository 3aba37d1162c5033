"""The golden frames say what `server_frames.py` says; the JavaScript tests read the same files."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from apps.wire import server_frames as server
from tests.frames.examples import EXAMPLES, FOLDER, texts

GOLDEN = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}


def cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{name}-{index}")
        for name, text in sorted(GOLDEN.items())
        if not name.startswith("_")
        for index, case in enumerate(json.loads(text))
    ]


def test_every_frame_of_the_protocol_has_a_golden_example() -> None:
    assert {type(frame) for frame in EXAMPLES} == set(server.CODES)


def test_the_golden_files_are_what_the_protocol_encodes_today() -> None:
    assert texts() == GOLDEN


@pytest.mark.parametrize("case", cases())
def test_both_codecs_carry_the_same_frame(case: dict[str, Any]) -> None:
    [frame] = [f for f in EXAMPLES if server.encode_msgpack(f).hex() == case["msgpack"]]
    code, *values = msgspec.msgpack.decode(bytes.fromhex(case["msgpack"]))
    kind, fields = server.fields_by_code()[code]
    by_array = {"type": kind, **dict(zip(fields, values, strict=False))}
    by_object = msgspec.json.decode(case["json"])
    assert by_object == {name: by_array[name] for name in by_object}
    assert server.encode_json(frame) == case["json"]
