"""`python -m bench.prediction DIR`: the next request guessed from what was said before, top 1 and top 3.

DIR holds `crosswoz/val.jsonl.gz` (thu-coai/CrossWOZ; lines of {"turns": [[role, text, [[act, domain, slot], …]], …]})
and `sgd/dev.jsonl.gz` (google-research-datasets/dstc8-schema-guided-dialogue; {"services": […], "turns": [[U or S,
text, active intents, acts], …]}). One thread, about two minutes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.prediction.cost import cost_of
from bench.prediction.dialogues import Corpus, corpora
from bench.prediction.measure import best_form, compared, curve, learned_from, promised, replayed, variants
from bench.prediction.ngrams import whole
from bench.prediction.report import Figures, write


def main() -> int:
    options = _options()
    figures = []
    for corpus in corpora(options.data):
        sys.stderr.write(f"{corpus.name} …\n")
        figures.append(_figures(corpus))
    write(options.results, figures)
    return 0


def _figures(corpus: Corpus) -> Figures:
    """Which n-gram is the best one is decided on the dialogues that are not held out, as all constants were."""
    learned, tried = (*corpus.learned, *corpus.tried), corpus.held_out
    readings = {"all acts with their domain": whole, "the principal act with its domain": corpus.principal}
    forms = {name: best_form(reading, corpus.learned, corpus.tried) for name, reading in readings.items()}
    predictor = learned_from(learned)
    return Figures(
        corpus=corpus.name,
        dialogues=(len(learned), len(tried)),
        rows=[
            row
            for name, reading in readings.items()
            for row in compared(name, forms[name], reading, predictor, learned, tried)
        ],
        variants=variants(learned, tried),
        curve=curve(forms["all acts with their domain"], learned, tried),
        promised=promised(predictor, tried),
        replay=replayed(predictor, tried),
        cost=cost_of(predictor, learned, tried),
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.prediction", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data", type=Path, metavar="DIR", help="where both sets lie")
    parser.add_argument("--results", type=Path, default=Path("bench/results"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
