"""The answer cache of one web process: what it holds, what it shares, and whether looking pays.

What may be kept and given again is decided in `apps.engine`; here are clock, Redis, metrics and the switch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from redis.asyncio import Redis

from apps.accounts.models import AnswerCacheMode
from apps.accounts.resident import SiteResident, SiteSettings
from apps.engine.answer_store import AnswerStore
from apps.engine.cache import MAX_ANSWER_CHARACTERS, Answer, Look, Question, Scope, question_of
from apps.engine.events import Finished
from apps.engine.languages import asked_in
from apps.engine.reuse import CACHE
from apps.engine.types import Passage
from apps.engine.worth import Worth
from apps.knowledge.resident import KnowledgeResident
from apps.llm.providers import builtin
from apps.rulebook.resident import RuleResident
from apps.telemetry import instruments
from apps.turns.kept.answer_copies import AnswerCopies
from apps.turns.retrieval import StartedRetrieval

PULL_INTERVAL_S = 1.0

Spawn = Callable[[Coroutine[Any, Any, None], str], object]


class Answers:
    """Owned by the process, used on its loop."""

    def __init__(
        self,
        redis: Redis,
        spawn: Spawn,
        *,
        sites: SiteResident,
        rules: RuleResident,
        knowledge: KnowledgeResident,
    ) -> None:
        self.store = AnswerStore()
        self.copies = AnswerCopies(redis)
        self._spawn = spawn
        self._sites, self._rules, self._knowledge = sites, rules, knowledge
        self._worth: dict[tuple[str, str], Worth] = {}
        self._pulls: dict[tuple[str, str], _Pulls] = {}

    def turn(
        self, site: SiteSettings, question: str, locale: str, retrieval: StartedRetrieval
    ) -> TurnAnswers | None:
        """The cache for one turn. Call it before the turn takes its rules.

        None where the site keeps no answers, or its settings have changed since the question came. Versions are read
        before what they are of, so that what is kept is never older than its scope says.
        """
        settings = self._sites.loaded_version(site.id)
        if site.answer_cache == AnswerCacheMode.OFF or self._sites.current(site.id) is not site:
            return None
        scope = self._scope(site, question, locale, settings)
        return TurnAnswers(self, site.answer_cache, scope, retrieval)

    async def take_in(self, site: SiteSettings, text: str, locale: str) -> None:
        """Fetches what other processes have kept and a question of this text could be given, before it is asked.

        Books nothing: whether looking pays is judged by questions.
        """
        question, settings = question_of(text, locale), self._sites.loaded_version(site.id)
        if site.answer_cache == AnswerCacheMode.OFF or question is None:
            return
        scope = self._scope(site, text, locale, settings)
        if not self.worth(scope.site, scope.language).on or self.store.holds(scope, question.key):
            return
        if answer := await self.copies.get(scope, question.key):
            self.store.keep(scope, answer)
        elif site.answer_cache == AnswerCacheMode.FULL:
            self.pull(scope)

    def holds(
        self,
        site: SiteSettings,
        text: str,
        locale: str,
        search: StartedRetrieval,
        passages: Sequence[Passage],
    ) -> bool:
        """Whether this process has an answer to the same question, whose search has found this. Books nothing."""
        question, settings = question_of(text, locale), self._sites.loaded_version(site.id)
        if site.answer_cache == AnswerCacheMode.OFF or question is None:
            return False
        scope = self._scope(site, text, locale, settings)
        if self.store.holds(scope, question.key):
            return True
        if site.answer_cache != AnswerCacheMode.FULL:
            return False
        look = self.store.similar(scope, question, search.vector, _titles(passages), time.time())
        return look.answer is not None

    def _scope(self, site: SiteSettings, question: str, locale: str, settings: int) -> Scope:
        rules, knowledge = self._rules.loaded_version(site.id), self._knowledge.loaded_version(site.id)
        return Scope(site.id, asked_in(question, locale).value, settings, rules, knowledge)

    def worth(self, site: str, language: str) -> Worth:
        """The account of a site and language."""
        return self._worth.setdefault((site, language), Worth())

    def keep(self, scope: Scope, answer: Answer) -> None:
        """Keeps an answer here at once, and for the others in the background."""
        self.store.keep(scope, answer)
        instruments.answer_cache_kept.inc()
        instruments.answer_cache_bytes.set(self.store.bytes)
        self._spawn(self.copies.put(scope, answer), "share an answer")

    def pull(self, scope: Scope) -> None:
        """Takes in what other processes have kept, in the background, at most once a second."""
        now, place = time.monotonic(), (scope.site, scope.language)
        pulls = self._pulls.get(place)
        if pulls is None or pulls.scope != scope:
            pulls = self._pulls[place] = _Pulls(scope)
        if now - pulls.at >= PULL_INTERVAL_S:
            pulls.at = now
            self._spawn(self._pull(pulls), "pull answers")

    async def _pull(self, pulls: _Pulls) -> None:
        while answers := await self.copies.since(pulls.scope, pulls.newest_s):
            for answer in answers:
                if not self.store.holds(pulls.scope, answer.key):
                    self.store.keep(pulls.scope, answer)
            last_s = max(answer.stored_s for answer in answers)
            if last_s <= pulls.newest_s:
                break
            pulls.newest_s = last_s
        instruments.answer_cache_bytes.set(self.store.bytes)


class _Pulls:
    """How far the others' answers of one scope have been taken in."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.at = -PULL_INTERVAL_S
        self.newest_s = 0.0


class TurnAnswers:
    """The cache as one turn sees it: the engine's port, then what is learnt from the turn's end."""

    def __init__(self, answers: Answers, mode: str, scope: Scope, retrieval: StartedRetrieval) -> None:
        """`scope` has the versions that this turn goes by, the knowledge as it is before the search is done."""
        self._answers = answers
        self._mode = mode
        self._scope = scope
        self._retrieval = retrieval
        self._worth = answers.worth(scope.site, scope.language)
        self._looked_s = 0.0
        self.open = self._worth.wants_look()

    async def exact(self, question: Question) -> Answer | None:
        """Looked for here, then in Redis."""
        started = time.perf_counter()
        answers = self._answers
        answer = answers.store.exact(self._scope, question, time.time())
        if answer is None and (answer := await answers.copies.get(self._scope, question.key)):
            answers.store.keep(self._scope, answer)
        self._looked_s = time.perf_counter() - started
        if answer is not None or self._mode != AnswerCacheMode.FULL:
            self._book("exact" if answer else "")
        return answer

    async def similar(self, question: Question, passages: Sequence[Passage]) -> Look:
        """Looked for among what this process holds; where it finds nothing, the others' are fetched for the next."""
        if self._mode != AnswerCacheMode.FULL:
            return Look()
        started = time.perf_counter()
        scope = self._searched()
        look = self._answers.store.similar(
            scope, question, self._retrieval.vector, _titles(passages), time.time()
        )
        self._looked_s += time.perf_counter() - started
        for reason in look.vetoes:
            instruments.answer_cache_vetoes.labels(reason.value).inc()
        self._book(look.by.value if look.by else "")
        if look.answer is None:
            self._answers.pull(scope)
        return look

    def finished(self, finished: Finished, text: str, first_token_s: float) -> None:
        """Keeps the answer where it is anyone's, and learns what a model takes.

        The builtin's answers are not kept: it stands in for models that fail, and takes no time to ask again.
        """
        if finished.endpoint == CACHE:
            return
        self._worth.answered(first_token_s * 1000)
        question = finished.reusable
        if question is None or finished.endpoint == builtin.NAME or len(text) > MAX_ANSWER_CHARACTERS:
            return
        answer = Answer(
            question.language, question.plain, text, finished.sources, self._retrieval.vector, time.time()
        )
        self._answers.keep(self._searched(), answer)

    def _searched(self) -> Scope:
        """With the knowledge that the search went by: an edit may have come since the turn began."""
        return self._scope.searched(self._retrieval.version or self._scope.knowledge)

    def _book(self, by: str) -> None:
        self._worth.looked(self._looked_s * 1000, hit=bool(by))
        instruments.answer_cache_look_seconds.observe(self._looked_s)
        instruments.answer_cache_looks.labels(by or "miss").inc()
        if by:
            instruments.answer_cache_saved_seconds.inc(self._worth.saved_ms / 1000)


def _titles(passages: Sequence[Passage]) -> tuple[str, ...]:
    """Of the articles that hold an answer."""
    return tuple(passage.title for passage in passages if passage.answerable)
