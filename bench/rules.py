"""What a site's rules cost a turn: `python -m bench.rules`. A table on standard output."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from apps.engine.rules import RuleInput
from apps.engine.types import Facts, FactsState, Order, Profile
from apps.rulebook.compiler import compile_condition
from apps.rulebook.ruleset import Action, CompiledRule, CompiledRules

KINDS: dict[str, Callable[[int], str]] = {
    "a word each": lambda n: f"tier == \"gold\" && text_lower.contains(\"word{n}\")",
    "no word": lambda n: f"tier == \"gold\" && turn_number > {n}",
    "a word and a pattern": lambda n: f"text_lower.contains(\"word{n}\") && text_lower.matches(\"refund|退款{n}\")",
    "a plain pattern": lambda n: f"text_lower.matches(\"lawyer|退款{n}\")",
    "a pattern": lambda n: f"text_lower.matches(\"refunds?|退款{n}\")",
}  # fmt: skip
ORDERS = tuple(Order(str(1000 + n), "in_transit", "2026-01-05", ("Lamp",), "$40", "UPS") for n in range(5))
MIA = Facts(True, FactsState.WARM, Profile("Mia", "mia@shop.example", "gold", {"vip": True}), ORDERS)
GIVEN = RuleInput("I would like a refund for my order 1042, 谢谢" * 3, "en", 1, MIA, within_hours=True)
RUNS = 300


def main() -> None:
    print(f"{'rules':<24}{'n':>6}{'median us':>11}{'max us':>9}{'compile ms':>12}")
    for kind, condition in KINDS.items():
        for count in (1, 100):
            start = time.perf_counter()
            rules = CompiledRules(
                [CompiledRule(str(n), compile_condition(condition(n)), Action()) for n in range(count)]
            )
            compiled_ms = (time.perf_counter() - start) * 1e3
            taken = [_decided_us(rules) for _ in range(RUNS)]
            print(
                f"{kind:<24}{count:>6}{statistics.median(taken):>11.0f}{max(taken):>9.0f}{compiled_ms:>12.1f}"
            )


def _decided_us(rules: CompiledRules) -> float:
    start = time.perf_counter()
    rules.decide(GIVEN)
    return (time.perf_counter() - start) * 1e6


if __name__ == "__main__":
    main()
