"""What the answer cache serves, and how often wrongly: `python -m bench.answer_cache [--data DIR]`. Tables.

The lists in `bench/data/answer_cache` are of the demo shop's articles, in halves by topic: lexicons and constants were
set by one, not by the other. What they owe to having one author is shown by striking words out, and by a list that was
written after them. `--data` names a folder with public data (banking77, paws_x_zh), read in place.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsvc.settings")

import django

django.setup()

from bench.answers.lists import HALVES, Group, fresh, near_misses, paraphrases  # noqa: E402 - Django first
from bench.answers.narrow import only_calibrated_words  # noqa: E402
from bench.answers.public import report_banking, report_paws  # noqa: E402
from bench.answers.trial import Shop, Tally, as_they_come, one_stored, timed, tried_near_misses  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder with banking77/ and paws_x_zh/")
    given = parser.parse_args()
    shop = Shop()
    for half in HALVES:
        _half(shop, half)
    with only_calibrated_words() as (english, chinese):
        struck = f"held out, without {english} English and {chinese} Chinese entries of the lexicons"
        _table(shop, struck, paraphrases(HALVES[1]))
    _table(shop, "fresh: written when all was done", fresh())
    _table(shop, "all at once", [*paraphrases(), *fresh()])
    _times(shop)
    if given.data:
        report_banking(given.data / "banking77" / "train.csv", shop)
        report_paws(given.data / "paws_x_zh" / "dev.tsv", shop)


def _half(shop: Shop, half: str) -> None:
    topics = ", ".join(sorted({group.topic for group in paraphrases(half)}))
    _table(shop, f"{half}: {topics}", paraphrases(half))
    for locale in ("en", "zh"):
        rows = [row for row in near_misses(half) if row.locale == locale]
        wrong = tried_near_misses(shop, rows)
        print(f"{locale}, near-misses: {len(wrong)} of {len(rows)} served {wrong or ''}")


def _table(shop: Shop, title: str, groups: Sequence[Group]) -> None:
    print(f"\n{title}\n{'':<44}{'asked':>6}{'served':>8}{'hits':>7}{'wrong':>7}{'precision ≥':>13}")
    total = {"one phrasing stored": Tally(), "every phrasing as it comes": Tally()}
    for locale in ("en", "zh"):
        spoken = [group for group in groups if group.locale == locale]
        for label, tally in (
            ("one phrasing stored", one_stored(shop, spoken)),
            ("every phrasing as it comes", as_they_come(shop, spoken)),
        ):
            _row(f"{locale}, {label}", tally)
            total[label] += tally
    for label, tally in total.items():
        _row(f"both, {label}", tally)


def _row(label: str, tally: Tally) -> None:
    print(
        f"{label:<44}{tally.asked:>6}{tally.served:>8}{tally.hit_rate:>7.1%}{len(tally.wrong):>7}"
        f"{tally.precision_at_least:>13.4f}  {' '.join(f'{k}={v}' for k, v in sorted(tally.by.items()))}"
    )
    for known, asked in tally.wrong:
        print(f"    wrong: {asked!r} answered as {known!r}")


def _times(shop: Shop) -> None:
    print("\nmicroseconds a look-up, median and 99th percentile, 2,000 answers held")
    for label, (median, high) in timed(shop).items():
        print(f"  {label:<40}{median:>8.1f}{high:>9.1f}")


if __name__ == "__main__":
    main()
