"""One schedule from the first hello to the verdict."""

from __future__ import annotations

import asyncio
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.chaos.faults import inject
from tests.chaos.holding import Holding
from tests.chaos.judge import Verdict, judge
from tests.chaos.line import Line, until_quiet
from tests.chaos.people import Agent, Customer, Person
from tests.chaos.schedule import HORIZON_S, Schedule
from tests.chaos.town import WEBS, Town

SETTLE_S = 90.0
_READ_S = 20.0
# A reading of rows this old would still be healed by the next change; all changes are over long before.
_SAME_ROWS_S = 15.0


@dataclass(slots=True)
class Report:
    """What was done and what came of it. `recovery_s` is per client, from the last fault's end to a whole state."""

    schedule: Schedule
    verdict: Verdict
    recovery_s: list[float] = field(default_factory=list)
    connections: int = 0
    messages: int = 0
    acknowledged: int = 0
    answers: int = 0
    served: int = 0
    closes: dict[int, int] = field(default_factory=dict)

    def __str__(self) -> str:
        recovered = sorted(self.recovery_s) or [0.0]
        lines = [
            str(self.schedule),
            f"{self.messages} said, {self.acknowledged} acknowledged, {self.answers} answers, "
            f"{self.served} taken by agents, {self.connections} connections, closed with {self.closes}",
            f"recovery: median {statistics.median(recovered):.2f} s, worst {recovered[-1]:.2f} s",
            *(case[:300] for case in self.verdict.cases[:12]),
        ]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Crowd:
    """Who takes part. `fetches` false makes clients that never ask for what they miss."""

    customers: int = 200
    agents: int = 10
    questions: int = 2  # of each customer
    fetches: bool = True


async def run(town: Town, schedule: Schedule, crowd: Crowd) -> Report:
    """Raises what a person's own reading of the protocol raises: a `Contradiction`, or a bug of the client."""
    await town.whole()
    tokens, cookies = await asyncio.to_thread(town.people, crowd.customers, crowd.agents + 1)
    rng = random.Random(schedule.seed)
    people = _people(town, rng, tokens, cookies[:-1], crowd.questions)
    for person in people:
        person.fetches = crowd.fetches
    async with asyncio.timeout(HORIZON_S + SETTLE_S + 120):
        lines = [asyncio.create_task(person.live()) for person in people]
        try:
            recovery = await _through(town, schedule, rng, people, lines)
            return await _judged(town, schedule, people, cookies[-1], recovery)
        finally:
            for line in lines:
                await until_quiet(line)


def _people(
    town: Town, rng: random.Random, tokens: Sequence[str], cookies: Sequence[str], questions: int
) -> list[Person]:
    def anywhere(path: str, own: random.Random) -> Callable[[], str]:
        return lambda: town.address(path, own.randrange(WEBS))

    people: list[Person] = []
    for number, token in enumerate(tokens):
        own = random.Random(rng.random())
        where = anywhere("customer", own)
        people.append(Customer(own, where, name=f"c{number}", token=token, questions=questions))
    for number, cookie in enumerate(cookies):
        own = random.Random(rng.random())
        where = anywhere("agent", own)
        people.append(Agent(own, where, headers={"Cookie": cookie}, name=f"Agent {number}"))
    return people


async def _through(
    town: Town, schedule: Schedule, rng: random.Random, people: list[Person], lines: list[asyncio.Task[None]]
) -> list[float]:
    """Lets them talk while things break; then how long each took to be whole again."""
    customers = [person for person in people if isinstance(person, Customer)]
    loop = asyncio.get_running_loop()
    keeping = asyncio.create_task(town.keep())
    talking = [asyncio.create_task(customer.talk()) for customer in customers]
    try:
        begun_s = loop.time()
        async with asyncio.TaskGroup() as faults:
            for injection in schedule.injections:
                await asyncio.sleep(max(0.0, begun_s + injection.at_s - loop.time()))
                faults.create_task(inject(town, injection, rng))
        healed_s = loop.time()
        watching = [asyncio.create_task(_whole_again(customer, healed_s)) for customer in customers]
        _, late = await asyncio.wait([*talking, *watching], timeout=SETTLE_S)
        for task in late:
            task.cancel()
        _raise_first(lines)
        await town.whole()
        return [task.result() for task in watching if task.done() and not task.cancelled()]
    finally:
        for task in (keeping, *talking):
            await until_quiet(task)


async def _whole_again(customer: Customer, since_s: float) -> float:
    loop = asyncio.get_running_loop()
    await customer.until(customer.settled)
    return loop.time() - since_s


async def _judged(
    town: Town, schedule: Schedule, people: list[Person], cookie: str, recovery: list[float]
) -> Report:
    customers = [person for person in people if isinstance(person, Customer)]
    agents = [person for person in people if isinstance(person, Agent)]
    await _agents_done(agents)
    await _come_true(lambda: all(customer.settled() for customer in customers), SETTLE_S)
    for agent in agents:
        agent.working = False
    read_again = {}
    async with asyncio.timeout(_READ_S * 3):
        for customer in customers:
            read_again[customer.holding.conversation] = await _read(customer)
        inbox = await _inbox(town, cookie, agents)
    verdict = judge(customers, agents, read_again, inbox)
    report = Report(schedule, verdict, recovery)
    for person in people:
        report.connections += person.connections
        report.messages += len(person.said)
        report.acknowledged += len(person.acknowledged.keys() & person.said.keys())
        for code, count in person.closes.items():
            report.closes[code] = report.closes.get(code, 0) + count
    report.served = sum(agent.served for agent in agents)
    report.answers = sum(
        message["author"] == "assistant"
        for truth in read_again.values()
        for message in truth.messages.values()
    )
    return report


async def _agents_done(agents: list[Agent]) -> None:
    """Nobody waits in a queue that any agent knows of, and no agent waits for an answer."""

    def done() -> bool:
        waiting = any(row["owner"]["kind"] == "queue" for agent in agents for row in agent.rows.values())
        return not waiting and not any(agent.outbox for agent in agents)

    await _come_true(done, SETTLE_S)


async def _read(customer: Customer) -> Holding:
    """The conversation as a second tab of the same customer, which was never there, is told it."""
    reader = Customer(customer.rng, customer.address, name=customer.name, token=customer.token)
    reader.holding = Holding(customer.holding.conversation)
    await _greeted(reader)
    return reader.holding


async def _inbox(town: Town, cookie: str, agents: list[Agent]) -> Agent:
    """A new agent's inbox, once the others have had their time to hear of the last change."""
    reader = Agent(
        random.Random(0), lambda: town.address("agent", 0), headers={"Cookie": cookie}, working=False
    )
    await _greeted(reader)

    def same() -> bool:
        return all(
            agent.rows.get(name, {}).get("seq") == row["seq"]
            for agent in agents
            for name, row in reader.rows.items()
        )

    await _come_true(same, _SAME_ROWS_S)
    return reader


async def _greeted(line: Line) -> None:
    """Connects until it has been greeted, and leaves."""
    task = asyncio.create_task(line.live())
    try:
        await _come_true(lambda: line.ready, _READ_S)
        assert line.ready, "nobody greets a newcomer"
    finally:
        await until_quiet(task)


async def _come_true(condition: Callable[[], bool], within_s: float) -> None:
    """Returns when it is so, or when the time is up: the judge then says what is amiss."""
    loop = asyncio.get_running_loop()
    until_s = loop.time() + within_s
    while not condition() and loop.time() < until_s:  # noqa: ASYNC110 - over many people's states, not one event
        await asyncio.sleep(0.02)


def _raise_first(lines: list[asyncio.Task[None]]) -> None:
    for line in lines:
        if line.done():
            line.result()
