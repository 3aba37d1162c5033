"""The browser's reducer and the model of the schedules read the protocol alike: the same frames, the same screen.

Both were written from docs/protocol.md, one in JavaScript and one in Python. The sequences are new in every run; the
message of a failure names its seed, which `AGAIN` repeats, and what was found is kept in tests/js/sequences.json.
"""

from __future__ import annotations

import json
import random
import secrets
import shutil
import subprocess
from typing import Any

import pytest

from chatsvc.environment import BASE_DIR
from tests.chaos.holding import Contradiction, Holding
from tests.support.histories import CONVERSATION, disturbed

Frame = dict[str, Any]
View = dict[str, Any]

SEQUENCES = 400
AGAIN: tuple[int, ...] = ()
KEPT = json.loads((BASE_DIR / "tests/js/sequences.json").read_text(encoding="utf-8"))


def drawn(seed: int) -> tuple[list[Frame], list[View]]:
    """A sequence, and what the model shows after each of its frames."""
    holding = Holding(CONVERSATION)
    frames, views = [], []
    for frame in disturbed(random.Random(seed), holding):
        frames.append(frame)
        views.append(applied(holding, frame, seed))
    return frames, views


def applied(holding: Holding, frame: Frame, of: object) -> View:
    try:
        holding.apply(frame)
    except Contradiction as contradiction:
        pytest.fail(f"the model takes {frame} of {of} for a contradiction: {contradiction}")
    live = holding.live
    return {
        "epoch": holding.epoch,
        "seq": holding.seq,
        "messages": [list(row) for row in holding.script()],
        "owner": [holding.owner["kind"], holding.owner.get("name", "")],
        "live": live and [live.turn, live.part, live.place, live.text],
        "missing": holding.gap,
    }


def reduced(sequences: list[list[Frame]]) -> list[list[View]]:
    """What the browser's reducer shows after each frame of each sequence."""
    node = shutil.which("node")
    assert node, "node is a tool of the tests"
    lines = "".join(f"{json.dumps(frames)}\n" for frames in sequences)
    done = subprocess.run(
        [node, str(BASE_DIR / "tests/js/reduce.js")], input=lines, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_any_sequence_shows_the_same_in_both() -> None:
    first = secrets.randbelow(2**31)
    seeds = [*AGAIN, *range(first, first + SEQUENCES)]
    modelled = [drawn(seed) for seed in seeds]
    shown = reduced([frames for frames, _ in modelled])
    for seed, (frames, views), browser in zip(seeds, modelled, shown, strict=True):
        for number, (frame, model, page) in enumerate(zip(frames, views, browser, strict=True), start=1):
            assert page == model, f"seed {seed}, frame {number} of {len(frames)}: {frame}"
        assert not browser[-1]["missing"], f"seed {seed}: something is missing at the end"


@pytest.mark.parametrize("kept", KEPT, ids=[kept["name"] for kept in KEPT])
def test_a_sequence_that_once_did_not(kept: dict[str, Any]) -> None:
    holding = Holding(CONVERSATION)
    model = [applied(holding, frame, kept["name"]) for frame in kept["frames"]]
    assert reduced([kept["frames"]]) == [model]
    assert model[-1] | kept["shows"] == model[-1]
