"""A site's rules, compiled and indexed by the words they wait for. Pure, CPU only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cel

from apps.engine.languages import Language, language_of
from apps.engine.rules import Decision, RuleInput
from apps.rulebook.compiler import Condition, EvaluationError
from apps.rulebook.vocabulary import MAX_TEXT_CHARACTERS, variables


@dataclass(frozen=True, slots=True)
class Action:
    """What a rule does where its condition holds. Empty fields do nothing."""

    reply_en: str = ""
    reply_zh: str = ""
    handoff: bool = False
    team: str = ""  # the team's name
    tag: str = ""
    instruction: str = ""

    def reply(self, locale: str) -> str:
        """In the customer's language if there is one, else in the other."""
        if language_of(locale) is Language.CHINESE:
            return self.reply_zh or self.reply_en
        return self.reply_en or self.reply_zh


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A rule that can be asked; `condition` is None where the stored one is refused: it counts as failed."""

    name: str
    condition: Condition | None
    action: Action


class CompiledRules:
    """All enabled rules of a site, in order of priority. Immutable; satisfies `engine.rules.RuleSet`."""

    def __init__(self, rules: Sequence[CompiledRule]) -> None:
        self._rules = tuple(rules)
        self._always: list[int] = []
        self._waiting: dict[str, list[int]] = {}
        self._attributes: set[str] = set()
        for at, rule in enumerate(rules):
            self._index(at, rule)

    def _index(self, at: int, rule: CompiledRule) -> None:
        if rule.condition is None or rule.condition.trigger is None:
            self._always.append(at)
        else:
            for word in rule.condition.trigger:
                self._waiting.setdefault(word, []).append(at)
        if rule.condition is not None:
            self._attributes |= rule.condition.attributes

    def decide(self, given: RuleInput) -> Decision:
        """Asks the rules that may hold. Never raises. 0.1 ms, and 1 us a rule, 0.1 ms one with a pattern."""
        candidates = self._candidates(given.text)
        if not candidates:
            return Decision()
        values = variables(given, self._attributes)
        known = values["attributes"]
        assert isinstance(known, dict)  # noqa: S101 - narrows the union of CEL values
        context = cel.Context(values)
        matched: list[CompiledRule] = []
        failed: list[str] = []
        for at in candidates:
            rule = self._rules[at]
            try:
                if rule.condition is None:
                    failed.append(rule.name)
                elif rule.condition.holds(context, known):
                    matched.append(rule)
            except EvaluationError:
                failed.append(rule.name)
        return _decision(matched, failed, given.locale)

    def _candidates(self, text: str) -> list[int]:
        # `lower` first, as the variable does: folding alone would miss what only lowering joins.
        folded = text[:MAX_TEXT_CHARACTERS].lower().casefold()
        woken = {at for word, waiting in self._waiting.items() if word in folded for at in waiting}
        return sorted(woken.union(self._always))


def _decision(matched: Sequence[CompiledRule], failed: Sequence[str], locale: str) -> Decision:
    actions = [rule.action for rule in matched]
    handoff = next((action for action in actions if action.handoff), None)
    return Decision(
        reply=next((reply for action in actions if (reply := action.reply(locale))), ""),
        handoff=handoff is not None,
        team=handoff.team if handoff else "",
        tags=tuple(dict.fromkeys(action.tag for action in actions if action.tag)),
        instructions=tuple(action.instruction for action in actions if action.instruction),
        matched=tuple(rule.name for rule in matched),
        failed=tuple(failed),
    )
