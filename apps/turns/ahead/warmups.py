"""Between two questions: has the model read what the next prompt will begin with, where the endpoint's switch says so.

Nothing waits for it, and a question ends it. The budget is the site's and this process's.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

from apps.accounts.resident import SiteSettings
from apps.customers.facts import Asker
from apps.engine.budget import TokenBudget
from apps.engine.context import Context
from apps.engine.prompt import facts_message, policy_message
from apps.engine.types import ChatMessage, Facts, FactsState, ModelRequest, Usage
from apps.telemetry import instruments
from apps.turns.ahead.expected import Asking, prompt_of_draft
from apps.turns.job import Job, assistant_of, teams_of
from apps.turns.runtime import Runtime

TOKENS_A_MINUTE: Final = 60_000
# A model that has read the conversation so lately has it still.
STILL_WARM_S: Final = 60.0
FORGOTTEN_AFTER_S: Final = 600.0
MAX_CONVERSATIONS: Final = 2_000  # whose last warm-up is remembered
# A prompt read ahead has served where the next one found so much of it computed. What is appended to ask for a token,
# and the block that was not full, are not found.
SERVED_SHARE: Final = 0.8

_Prompt: TypeAlias = Callable[[], Awaitable[ModelRequest | None]]  # None where nothing is to be read

_NOBODY: Final = Facts(verified=False, state=FactsState.NONE)


@dataclass(slots=True)
class _Last:
    """When the model last read the conversation; and, of what it has read ahead since the last turn, how long the
    newest prompt was, which one, and what they all have cost.
    """

    at: float
    prompt_tokens: int = 0  # 0 where nothing was read ahead
    prompt: int = 0  # its hash: the words themselves are not kept
    computed_tokens: int = 0

    def serves(self, usage: Usage) -> bool:
        """Whether a prompt of such usage found it computed."""
        return self.prompt_tokens > 0 and usage.cached_tokens >= SERVED_SHARE * self.prompt_tokens

    def settle(self, end: str) -> None:
        """Counts what has become of it, where something was read ahead."""
        if self.prompt_tokens:
            instruments.warmed.labels(end).inc()
            instruments.warmed_tokens.labels(end).inc(self.computed_tokens)


class Warmups:
    """Owned by the web process. A resident of the site's settings too: a new version has its beginning read."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._loop: asyncio.AbstractEventLoop | None = None
        self._versions: dict[str, int] = {}
        self._policies: dict[str, tuple[ChatMessage, tuple[str, ...]]] = {}  # as last read ahead
        self._budgets: dict[str, TokenBudget] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._last: OrderedDict[str, _Last] = OrderedDict()  # by conversation, the last read last

    def open(self) -> None:
        """On the loop, once endpoints are warm: reads ahead for the sites that are loaded, and from now on."""
        self._loop = asyncio.get_running_loop()
        for site in tuple(self._versions):
            self._renew(site)

    def refresh(self, site_id: str, version: int) -> None:
        """From any thread, after the site's settings and endpoints were loaded."""
        self._versions[site_id] = version
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._renew, site_id)

    def loaded_version(self, site_id: str) -> int:
        """The version given at the last `refresh`, 0 when there was none."""
        return self._versions.get(site_id, 0)

    def forget(self, site_id: str) -> None:
        """The site is gone."""
        for held in (self._versions, self._policies, self._budgets):
            held.pop(site_id, None)

    def _renew(self, site_id: str) -> None:
        site = self._runtime.sites.current(site_id)
        if site is None or not (site.assistant_enabled and self._runtime.line.prepares(site_id)):
            self._policies.pop(site_id, None)  # read when it is switched on again
            return
        policy, teams = _policy(site), teams_of(site)
        if self._policies.get(site_id) != (policy, teams):
            self._policies[site_id] = (policy, teams)
            self._runtime.spawn(self._read_site(site, policy), "warm-up of a site")

    async def _read_site(self, site: SiteSettings, policy: ChatMessage) -> None:
        request = _request(site, (policy, facts_message(_NOBODY)))
        budget = self._budget(site.id)
        if not budget.take(request.prompt_tokens, time.monotonic()):
            instruments.warmups.labels("site", "capped").inc()
            return
        told = await self._runtime.line.prepare_all(site.id, request)
        budget.give_back(request.prompt_tokens - sum(map(_counted, told)))
        instruments.warmups.labels("site", "read" if told else "passed").inc()

    def end(self, conversation: str) -> None:
        """A question has come, or the draft is gone: whatever is being read for the conversation ends."""
        task = self._running.pop(conversation, None)
        if task is not None:
            task.cancel()

    def answered(self, job: Job, usage: Usage | None, *, goes_on: bool) -> None:
        """A turn has ended as it should; `usage` is what the model told, None where it was not asked.

        The conversation `goes_on` with the assistant: what was said is read.
        """
        self._forget_old()
        last = self._last.pop(job.conversation, None)
        if last is not None and last.prompt_tokens and usage is None:
            self._last[job.conversation] = last  # read for a question that is still to come
        elif usage is not None:
            if last is not None:
                last.settle("used" if last.serves(usage) else "missed")
            self._last[job.conversation] = _Last(time.monotonic())
        if goes_on:
            prompt = partial(self._known, job.site, job.conversation, job.asker)
            self._begin("turn", job.site, job.conversation, prompt)

    def typing(self, site: SiteSettings, asking: Asking) -> None:
        """The customer writes: has read what their question would come behind, its articles included, unless it was."""
        self._begin("draft", site, asking.conversation, partial(self._before_question, site, asking))

    def _begin(self, why: str, site: SiteSettings, conversation: str, prompt: _Prompt) -> None:
        if not self._runtime.line.prepares(site.id):
            return
        self.end(conversation)  # an older draft's
        task = self._runtime.spawn(self._read(why, site, conversation, prompt), "warm-up")
        self._running[conversation] = task
        task.add_done_callback(lambda ended: self._ended(conversation, ended))

    def _ended(self, conversation: str, task: asyncio.Task[None]) -> None:
        if self._running.get(conversation) is task:
            del self._running[conversation]

    async def _read(self, why: str, site: SiteSettings, conversation: str, prompt: _Prompt) -> None:
        outcome = "ended"  # by a question, or with its draft
        try:
            request = await prompt()
            outcome = await self._tried(site, conversation, request) if request is not None else "passed"
        finally:
            instruments.warmups.labels(why, outcome).inc()

    async def _known(self, site: SiteSettings, conversation: str, asker: Asker) -> ModelRequest | None:
        """What the next prompt will begin with, whatever is asked."""
        context = await self._runtime.contexts.of(conversation, 0)
        if not context.awaits_customer:
            return None
        facts = await self._facts(asker) if not context.head else None
        return _request(site, context.known(_policy(site), facts), conversation, context)

    async def _before_question(self, site: SiteSettings, asking: Asking) -> ModelRequest | None:
        """All of the prompt but the draft's own words, which are nobody's yet."""
        request = await prompt_of_draft(self._runtime, site, asking)
        return replace(request, messages=request.messages[:-1], question="") if request is not None else None

    async def _tried(self, site: SiteSettings, conversation: str, request: ModelRequest) -> str:
        last, now, prompt = self._last.get(conversation), time.monotonic(), hash(request.messages)
        if last is not None and last.prompt == prompt and now - last.at < STILL_WARM_S:
            return "passed"
        budget = self._budget(site.id)
        if not budget.take(request.prompt_tokens, now):
            return "capped"
        usage = await self._runtime.line.prepare(site.id, request)
        if usage is None:
            budget.give_back(request.prompt_tokens)
            return "passed"
        computed = _counted(usage)
        budget.give_back(request.prompt_tokens - computed)
        last = self._last.pop(conversation, None)
        if last is not None and last.serves(usage):
            computed += last.computed_tokens  # this one goes on where that one ended
        elif last is not None:
            last.settle("wasted")
        self._last[conversation] = _Last(time.monotonic(), usage.prompt_tokens, prompt, computed)
        return "read"

    async def _facts(self, asker: Asker) -> ChatMessage | None:
        facts = await self._runtime.facts.facts(asker, needed=False)
        return None if facts.state is FactsState.UNAVAILABLE else facts_message(facts)

    def _budget(self, site_id: str) -> TokenBudget:
        return self._budgets.setdefault(site_id, TokenBudget(TOKENS_A_MINUTE))

    def _forget_old(self) -> None:
        """Customers who did not come back have asked nothing."""
        now = time.monotonic()
        while self._last:
            conversation, oldest = next(iter(self._last.items()))
            if now - oldest.at < FORGOTTEN_AFTER_S and len(self._last) < MAX_CONVERSATIONS:
                return
            del self._last[conversation]
            oldest.settle("wasted")


def _policy(site: SiteSettings) -> ChatMessage:
    return policy_message(assistant_of(site))


def _request(
    site: SiteSettings,
    messages: tuple[ChatMessage, ...],
    conversation: str = "",
    context: Context | None = None,
) -> ModelRequest:
    return ModelRequest(
        messages=messages,
        question="",
        locale="",
        facts=_NOBODY,
        passages=(),
        teams=teams_of(site),
        cache_key=conversation,
        endpoint=context.endpoint if context is not None else "",
    )


def _counted(usage: Usage) -> int:
    """What the model had to compute of it."""
    computed = usage.prompt_tokens - usage.cached_tokens
    instruments.warmup_tokens.labels("cached").inc(usage.cached_tokens)
    instruments.warmup_tokens.labels("computed").inc(computed)
    return computed
