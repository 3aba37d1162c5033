"""How well and how fast the demo's articles are found: `python -m bench.retrieval`. A table on standard output."""

from __future__ import annotations

import os
import statistics
import time

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsvc.settings")

import django

django.setup()

from apps.knowledge.embeddings import process_embedder  # noqa: E402 - Django first
from apps.knowledge.ranking import Corpus  # noqa: E402
from tests.support.lantern import Question, corpus, questions, tally  # noqa: E402


def main() -> None:
    both = corpus()
    print(f"{len(both.entries)} passages")
    print(f"{'questions':<34}{'n':>4}{'rank 1':>8}{'precision':>11}{'recall':>8}  answered wrong / given up")
    for name in ("lantern_questions", "lantern_questions_unseen"):
        for locale in ("en", "zh"):
            asked = list(questions(name, locale))
            _row(f"{name} {locale}", both, asked)
            _row(f"{name} {locale}, words alone", both, asked, by_words=True)
            other = "zh" if locale == "en" else "en"
            _row(f"{name} {locale} → {other}", corpus((other,)), asked)
    _times(both, list(questions("lantern_questions", "en")) + list(questions("lantern_questions", "zh")))


def _row(label: str, searched: Corpus, asked: list[Question], by_words: bool = False) -> None:
    found = tally(searched, asked, by_words)
    print(
        f"{label.removeprefix('lantern_'):<34}{len(asked):>4}{found.ranked_right:>5}/{found.answerable}"
        f"{found.precision:>10.3f}{found.recall:>8.2f}  {list(found.answered_wrong)} / {list(found.given_up)}"
    )


def _times(searched: Corpus, asked: list[Question]) -> None:
    embedding, ranking = [], []
    for question in asked:
        start = time.perf_counter()
        vector = process_embedder().embed_question(question.text)
        between = time.perf_counter()
        searched.passages(question.text, vector, question.locale, limit=4)
        embedding.append(between - start)
        ranking.append(time.perf_counter() - between)
    for label, taken in (("embedding", embedding), ("ranking", ranking)):
        print(f"{label}: median {statistics.median(taken) * 1e3:.2f} ms, max {max(taken) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
