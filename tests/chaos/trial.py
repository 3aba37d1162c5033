"""One schedule from the first hello to the verdict."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

from tests.chaos.faults import inject
from tests.chaos.holding import Holding
from tests.chaos.judge import judge
from tests.chaos.line import until_quiet
from tests.chaos.people import Agent, Customer, Person, Reader
from tests.chaos.report import Report
from tests.chaos.schedule import HORIZON_S, Schedule
from tests.chaos.town import WEBS, Town
from tests.chaos.ways import Poll, Socket, Stream, Way

_READ_S = 20.0
_OF_WHOM_ONE_LEAVES_AN_ADDRESS = 5
_OF_WHOM_ONE_LOOKS_TWICE = 5
# What a process did not notice that it missed, it finds when it looks at the numbers, within eleven seconds.
_TOLD_S = 15.0


@dataclass(frozen=True, slots=True)
class Crowd:
    """Who takes part."""

    customers: int = 200
    agents: int = 10
    questions: int = 1  # of each customer
    settle_s: float = 90.0  # how long they are waited for


async def run(town: Town, schedule: Schedule, crowd: Crowd) -> Report:
    """Raises what a person's own reading of the protocol raises: a `Contradiction`, or a bug of the client."""
    await town.whole()
    tokens, cookies = await asyncio.to_thread(town.people, crowd.customers, crowd.agents)
    rng = random.Random(schedule.seed)
    people = _people(town, rng, tokens, cookies, crowd.questions)
    async with asyncio.timeout(HORIZON_S + 3 * crowd.settle_s + 60):
        lines = [asyncio.create_task(person.live()) for person in people]
        try:
            recovery = await _through(town, schedule, rng, people, lines, crowd.settle_s)
            return await _judged(town, schedule, people, cookies, recovery, crowd.settle_s)
        finally:
            for line in lines:
                await until_quiet(line)


def _people(
    town: Town, rng: random.Random, tokens: Sequence[str], cookies: Sequence[str], questions: int
) -> list[Person]:
    def anywhere(own: random.Random) -> Callable[[], str]:
        return lambda: town.host(own.randrange(WEBS))

    people: list[Person] = []
    for number, token in enumerate(tokens):
        own = random.Random(rng.random())
        customer = Customer(own, anywhere(own), _way(number), name=f"c{number}", token=token)
        customer.questions = questions
        customer.email = f"{uuid4().hex}@example.com" if number % _OF_WHOM_ONE_LEAVES_AN_ADDRESS == 0 else ""
        people.append(customer)
    for number, cookie in enumerate(cookies):
        own = random.Random(rng.random())
        people.append(
            Agent(own, anywhere(own), _way(number), headers={"Cookie": cookie}, name=f"Agent {number}")
        )
    return people


def _way(number: int) -> type[Way]:
    """Of ten people one hears a stream; of thirty one more asks again and again."""
    if number % 10 == 4:
        return Stream
    return Poll if number % 30 == 7 else Socket


async def _through(
    town: Town,
    schedule: Schedule,
    rng: random.Random,
    people: list[Person],
    lines: list[asyncio.Task[None]],
    settle_s: float,
) -> list[float]:
    """Lets them talk while things break; then how long each took to be whole again."""
    customers = [person for person in people if isinstance(person, Customer)]
    loop = asyncio.get_running_loop()
    keeping = asyncio.create_task(town.keep())
    talking = [asyncio.create_task(customer.talk()) for customer in customers]
    try:
        # Some are in mid-talk when it begins, and some are only about to come in.
        await _come_true(lambda: 2 * sum(customer.ready for customer in customers) >= len(customers), _READ_S)
        begun_s = loop.time()
        async with asyncio.TaskGroup() as faults:
            for injection in schedule.injections:
                await asyncio.sleep(max(0.0, begun_s + injection.at_s - loop.time()))
                faults.create_task(inject(town, injection, rng))
        healed_s = loop.time()
        watching = [asyncio.create_task(_whole_again(customer, healed_s)) for customer in customers]
        _, late = await asyncio.wait([*talking, *watching], timeout=settle_s)
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
    town: Town,
    schedule: Schedule,
    people: list[Person],
    cookies: Sequence[str],
    recovery: list[float],
    settle_s: float,
) -> Report:
    customers = [person for person in people if isinstance(person, Customer)]
    agents = [person for person in people if isinstance(person, Agent)]
    await _agents_done(agents, settle_s)
    await _come_true(lambda: all(customer.settled() for customer in customers), settle_s)
    for agent in agents:
        agent.working = False
    names = [customer.holding.conversation for customer in customers]
    async with asyncio.timeout(_READ_S * 3), _reading(town, cookies) as readers:
        shares = [names[number :: len(readers)] for number in range(len(readers))]
        read = await asyncio.gather(*map(_read_all, readers, shares))
        read_again = {holding.conversation: holding for share in read for holding in share}
        second_tabs = {
            customer: await _second_tab(customer) for customer in customers[::_OF_WHOM_ONE_LOOKS_TWICE]
        }
        await _heard_of_all(customers, read_again, agents, readers[0])
    verdict = judge(customers, agents, read_again, second_tabs, readers[0])
    report = Report(schedule, verdict, recovery, len(customers), len(agents))
    for person in people:
        report.connections[person.way.name] += person.connections
        report.messages += len(person.said)
        report.acknowledged += len(person.acknowledged.keys() & person.said.keys())
        report.closes.update(person.closes)
    report.owed = _owed(customers, agents)
    report.served = sum(agent.served for agent in agents)
    report.answers = sum(
        message["author"] == "assistant"
        for truth in read_again.values()
        for message in truth.messages.values()
    )
    return report


def _owed(customers: list[Customer], agents: list[Agent]) -> list[tuple[str, str]]:
    """The mails that agents' acknowledged replies promise: to whom, and the text."""
    emails = {customer.holding.conversation: customer.email for customer in customers if customer.email}
    return [
        (emails[conversation], agent.said[name])
        for agent in agents
        for name, conversation in agent.said_in.items()
        if conversation in emails and name in agent.acknowledged
    ]


async def _agents_done(agents: list[Agent], settle_s: float) -> None:
    """Nobody waits in a queue that any agent knows of, and no agent waits for an answer."""

    def done() -> bool:
        waiting = any(row["owner"]["kind"] == "queue" for agent in agents for row in agent.rows.values())
        return not waiting and not any(agent.outbox for agent in agents)

    await _come_true(done, settle_s)


@asynccontextmanager
async def _reading(town: Town, cookies: Sequence[str]) -> AsyncIterator[list[Reader]]:
    """Second tabs of the agents: as newcomers they know nothing. One person may not look at everything at once."""
    readers = [
        Reader(random.Random(0), partial(town.host, number % WEBS), headers={"Cookie": cookie})
        for number, cookie in enumerate(cookies)
    ]
    lines = [asyncio.create_task(reader.live()) for reader in readers]
    try:
        await _come_true(lambda: all(reader.ready for reader in readers), _READ_S)
        assert all(reader.ready for reader in readers), "nobody greets a newcomer"
        yield readers
    finally:
        for line in lines:
            await until_quiet(line)


async def _read_all(reader: Reader, conversations: list[str]) -> list[Holding]:
    return [await reader.read(conversation) for conversation in conversations]


async def _second_tab(customer: Customer) -> Holding:
    """What a second tab of the same customer, which was never there, is told."""
    tab = Customer(customer.rng, customer.host, name=customer.name, token=customer.token)
    task = asyncio.create_task(tab.live())
    try:
        await _come_true(lambda: tab.ready, _READ_S)
        assert tab.ready, "nobody greets a newcomer"
    finally:
        await until_quiet(task)
    return tab.holding


async def _heard_of_all(
    customers: list[Customer], stored: dict[str, Holding], agents: list[Agent], newcomer: Agent
) -> None:
    """Gives everybody their time to hear of the last change."""

    def same() -> bool:
        shown = all(
            customer.holding.seq >= stored[customer.holding.conversation].seq
            for customer in customers
            if customer.holding.conversation in stored
        )
        return shown and all(
            agent.rows.get(name, {}).get("seq") == row["seq"]
            for agent in agents
            for name, row in newcomer.rows.items()
        )

    await _come_true(same, _TOLD_S)


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
