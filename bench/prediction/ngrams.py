"""The base lines: n-grams of acts, in sixteen forms."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from apps.engine.dialogue import Act
from bench.prediction.dialogues import Dialogue

Label = Hashable
Reading = Callable[[Sequence[Act]], Label]


@dataclass(frozen=True, slots=True)
class Form:
    """`order` 1 knows only how often what is asked. `both` counts the assistant's moves as tokens too."""

    order: int
    both: bool
    interpolated: bool  # Witten–Bell; otherwise the longest context that was seen, then shorter ones

    def __str__(self) -> str:
        whose = "both sides" if self.both else "the customer"
        return f"{self.order}-gram of {whose}, {'interpolated' if self.interpolated else 'back-off'}"


FORMS = tuple(
    Form(order, both, interpolated)
    for order in (1, 2, 3, 4)
    for both in (False, True)
    for interpolated in (False, True)
)
USUAL = Form(order=3, both=False, interpolated=False)


def whole(request: Sequence[Act]) -> Label:
    """All acts of a message, each with its domain: the strictest reading."""
    return tuple(request)


class NGrams:
    """Counts of one form, learned from dialogues read as labels."""

    def __init__(self, form: Form, reading: Reading, dialogues: Iterable[Dialogue]) -> None:
        self._form = form
        self._reading = reading
        self._seen: dict[tuple[Label, ...], Counter[Label]] = defaultdict(Counter)
        for dialogue in dialogues:
            for before, label in self._steps(dialogue):
                for length in range(form.order):
                    if length <= len(before):
                        self._seen[self._context(before, length)][label] += 1

    def ranked(self, dialogue: Dialogue) -> Iterator[tuple[list[Label], Label]]:
        """For each of the customer's messages but the first: the labels, likeliest first, and the right one."""
        rank = self._interpolated if self._form.interpolated else self._backed_off
        for number, (before, label) in enumerate(self._steps(dialogue)):
            if number:
                yield rank(before), label

    def _steps(self, dialogue: Dialogue) -> Iterator[tuple[list[Label], Label]]:
        before: list[Label] = ["start"]
        for move in dialogue:
            label = self._reading(move.request)
            if move.by_customer:
                yield before, label
                before.append(label)
            elif self._form.both:
                before.append(("assistant", label))

    def _context(self, before: list[Label], length: int) -> tuple[Label, ...]:
        return tuple(before[len(before) - length :])

    def _contexts(self, before: list[Label]) -> Iterator[Counter[Label]]:
        """Shortest first, only those that were seen."""
        for length in range(min(self._form.order, len(before) + 1)):
            counts = self._seen.get(self._context(before, length))
            if counts:
                yield counts

    def _backed_off(self, before: list[Label]) -> list[Label]:
        longest_first = reversed(list(self._contexts(before)))
        return list(dict.fromkeys(label for counts in longest_first for label, _ in counts.most_common()))

    def _interpolated(self, before: list[Label]) -> list[Label]:
        probability = dict.fromkeys(self._seen[()], 1 / len(self._seen[()]))
        for counts in self._contexts(before):
            total = counts.total()
            trusted = total / (total + len(counts))
            probability = {
                label: trusted * counts[label] / total + (1 - trusted) * shorter
                for label, shorter in probability.items()
            }
        return sorted(probability, key=lambda label: -probability[label])
