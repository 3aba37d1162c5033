"""What it saves and wastes to begin while the customer types: `python -m bench.drafts`. A table on standard output.

The same typists with the same keys in every arm, interleaved: without drafts, and with them by how long Enter takes.
The time between keys is log-normal with the mean and spread of 136 million keystrokes (Dhakal et al., CHI 2018: mean
239 ms, standard deviation 112 ms); how long people wait before Enter is not published, so it is an axis here.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bench.turn.clients import Credentials, Ours
from bench.turn.questions import ROUND, signed
from bench.turn.stack import running
from bench.turn.wanted import Model
from tests.support.metrics import metrics_at

# So many a minute that no guess is refused: what it costs without a bound.
GUESS_TOKENS = 10_000_000
KEY_MEAN_S, KEY_SPREAD_S = 0.239, 0.112
REST_S = 0.3  # as in static/js/widget/draft-sender.js
METRICS = {
    "saved_s": "chatsvc_drafts_saved_seconds_total",
    "wasted_s": "chatsvc_drafts_wasted_seconds_total",
    "used": 'chatsvc_drafts_total{end="used"}',
    "searches": 'chatsvc_knowledge_searches_total{by="meaning"}',
    "words": 'chatsvc_knowledge_searches_total{by="words"}',
    "retrieval_s": 'chatsvc_stage_seconds_sum{stage="retrieval"}',
    "guesses": 'chatsvc_speculations_total{end="used"}',
    "guess_used": 'chatsvc_speculation_tokens_total{end="used"}',
    "guess_wasted": 'chatsvc_speculation_tokens_total{end="wasted"}',
    "prompt": 'chatsvc_llm_tokens_total{kind="prompt"}',
    "completion": 'chatsvc_llm_tokens_total{kind="completion"}',
}


@dataclass(slots=True)
class Arm:
    """Customers who wait so long before Enter; without drafts where `drafts` is false.

    Where the endpoint reads `ahead`, it is given the conversation after each answer and again with each draft's
    articles; where the site `guesses`, the answer is begun as well.
    """

    name: str
    enter_s: float
    drafts: bool
    ahead: bool = False
    guesses: bool = False
    first_ms: list[float] = field(default_factory=list)
    drafted: int = 0
    counted: Counter[str] = field(default_factory=Counter)


def main() -> int:
    options = _options()
    arms = [
        Arm("no drafts", 0.2, drafts=False),
        *(Arm(f"drafts, Enter after {s:.1f} s", s, drafts=True) for s in (0.2, 0.5, 1.0)),
        *(
            Arm(f"read ahead, Enter after {s:.1f} s", s, drafts=True, ahead=True)
            for s in (0.5, 1.0)
            if options.ahead
        ),
        *(
            Arm(f"answers begun, Enter after {s:.1f} s", s, drafts=True, ahead=options.ahead, guesses=True)
            for s in (0.5, 1.0, 2.0)
            if options.guesses
        ),
    ]
    people = options.rounds * options.at_once * len(arms)
    with running(options.profile, None, people) as stack:
        sites: dict[tuple[bool, bool], Iterator[str]] = {}
        for ahead, guesses in sorted({(arm.ahead, arm.guesses) for arm in arms}):
            stack.model = Model(base_url=stack.upstream.base_url, dialect="vllm", prepare_prompts=ahead)
            made = stack.people(people, answer_cache="off", speculation_tokens=GUESS_TOKENS * guesses)
            sites[ahead, guesses] = iter(made.identities)
        stack.renew_model(answer_tokens=options.tokens)
        host = stack.product().host
        for number in range(options.rounds):
            for arm in arms:
                site = sites[arm.ahead, arm.guesses]
                crowd = [Credentials(identity=next(site)) for _ in range(options.at_once)]
                asyncio.run(_round(host, arm, crowd, number, options.turns))
            sys.stderr.write(f"round {number + 1} of {options.rounds}\n")
    _table(arms)
    return 0


async def _round(host: str, arm: Arm, crowd: list[Credentials], number: int, turns: int) -> None:
    before = await asyncio.to_thread(scraped, host, METRICS)
    async with asyncio.TaskGroup() as people:
        for seat, who in enumerate(crowd):
            people.create_task(_person(host, arm, who, random.Random(f"{number} {seat}"), turns))
    after = await asyncio.to_thread(scraped, host, METRICS)
    arm.counted.update({name: after[name] - before[name] for name in METRICS})


async def _person(host: str, arm: Arm, who: Credentials, dice: random.Random, turns: int) -> None:
    async with Ours(host, who) as line:
        for one in dice.sample(ROUND, turns):
            question = signed(one, dice.randrange(250_000))
            for index in range(1, len(question)):
                if await _pause(line, arm, question[:index], _key_s(dice)):
                    arm.drafted += 1
            if await _pause(line, arm, question, arm.enter_s):
                arm.drafted += 1
            timing = await line.ask(question)
            arm.first_ms.append((timing.first_s - timing.asked_s) * 1000)


async def _pause(line: Ours, arm: Arm, text: str, seconds: float) -> bool:
    """Rests before the next key; whether long enough for a draft."""
    await asyncio.sleep(min(seconds, REST_S))
    if seconds <= REST_S:
        return False
    if arm.drafts:
        await line.write(text)
    await asyncio.sleep(seconds - REST_S)
    return arm.drafts


def _key_s(dice: random.Random) -> float:
    spread = math.log(1 + (KEY_SPREAD_S / KEY_MEAN_S) ** 2)
    return dice.lognormvariate(math.log(KEY_MEAN_S) - spread / 2, math.sqrt(spread))


def scraped(host: str, wanted: Mapping[str, str]) -> dict[str, float]:
    """The samples of a process by the names that `wanted` gives them; 0 for one that is not there yet."""
    samples = metrics_at(host, timeout_s=10)
    return {name: samples.get(sample, 0.0) for name, sample in wanted.items()}


def _table(arms: list[Arm]) -> None:
    print(
        "| | turns | first text P50 | P95 | mean | waited for search | saved a turn | wasted a turn | used "
        "| searches a turn | answers used | tokens a turn | of them wasted |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for arm in arms:
        turns, counted = len(arm.first_ms), arm.counted
        p95 = statistics.quantiles(arm.first_ms, n=20)[-1]
        each = {name: counted[f"{name}_s"] / turns * 1000 for name in ("retrieval", "saved", "wasted")}
        searches = (counted["searches"] + counted["words"]) / turns
        print(
            f"| {arm.name} | {turns} | {statistics.median(arm.first_ms):.1f} ms | {p95:.1f} ms "
            f"| {statistics.fmean(arm.first_ms):.1f} ms "
            f"| {each['retrieval']:.1f} ms | {each['saved']:.1f} ms | {each['wasted']:.1f} ms "
            f"| {counted['used'] / turns:.0%} | {searches:.1f} | {counted['guesses'] / turns:.0%} "
            f"| {(counted['prompt'] + counted['completion']) / turns:.0f} | {counted['guess_wasted'] / turns:.0f} |"
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.drafts", description=__doc__)
    parser.add_argument("--profile", default="instant", choices=("instant", "brief", "hosted", "self-hosted"))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--at-once", type=int, default=8, help="people who type at the same time")
    parser.add_argument("--tokens", type=int, default=5, help="length of an answer")
    parser.add_argument("--ahead", action="store_true", help="have the model read ahead, in further arms")
    parser.add_argument("--guesses", action="store_true", help="begin answers too, in further arms")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
