"""The neural tagger beside the linear one: ``python benchmarks/neural_tagging.py [wsj|conll2000|ewt] [--seeds 3]``.

For each seed and policy it trains on the training part and prints accuracy (F1 of chunks for conll2000) on the test
part. ``--dev`` trains on nine tenths and tests on the last one: settings are chosen that way. Results go to
reports/neural-tagging.json as they come.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.corpora import CORPORA, TaggedSentence
from lols import Tagger

PASSES = {"linear": 8, "neural": 20}


def parts(sentences: list[TaggedSentence]) -> tuple[Any, Any]:
    """Words, with parts of speech where they are given, and tags."""
    with_tags = [[{"word": w, "pos": p} for w, p in zip(s.words, s.pos)] if s.pos else s.words for s in sentences]
    return with_tags, [s.tags for s in sentences]


def option(text: str) -> tuple[str, Any]:
    """An option of `Tagger` as it is typed, such as width=200."""
    name, _, value = text.partition("=")
    return name, json.loads(value) if value[:1].isdigit() else value


def main() -> None:
    """Train and print."""
    arguments = argparse.ArgumentParser(description="The neural tagger beside the linear one.")
    arguments.add_argument("corpora", nargs="*", metavar="CORPUS", help=f"{', '.join(CORPORA)}; by default wsj")
    arguments.add_argument("--policy", choices=("linear", "neural"), help="only this one")
    arguments.add_argument("--passes", type=int, help="8 for the linear policy and 20 for the neural one by default")
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--first", type=int, default=0, help="the first seed")
    arguments.add_argument("--option", action="append", default=[], type=option, help="of Tagger, such as width=200")
    arguments.add_argument("--dev", action="store_true", help="test on the last tenth of the training part")
    chosen = arguments.parse_args()
    found: dict[str, list[float]] = {}
    for name in chosen.corpora or ["wsj"]:
        data = CORPORA[name]()
        train, test = data.train, data.test
        if chosen.dev:
            cut = len(train) * 9 // 10
            train, test = train[:cut], train[cut:]
        for seed in range(chosen.first, chosen.first + chosen.seeds):
            for policy in (chosen.policy,) if chosen.policy else PASSES:
                passes, began = chosen.passes or PASSES[policy], time.perf_counter()
                tagger = Tagger(policy=policy, passes=passes, seed=seed, progress=False, **dict(chosen.option))
                scores = tagger.fit(*parts(train)).evaluate(*parts(test))
                value = 100 * (scores.accuracy if scores.spans is None else scores.spans.f1)
                found.setdefault(f"{name} {policy}", []).append(value)
                took = time.perf_counter() - began
                print(f"{name}, {policy}, seed {seed}, {passes} passes: {value:.2f}; {took:.0f} s", flush=True)
                Path("reports").mkdir(exist_ok=True)
                Path("reports/neural-tagging.json").write_text(json.dumps(found, indent=1))
    for name, values in found.items():
        error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
        print(f"{name}: {statistics.mean(values):.2f}, standard error {error:.2f}")


if __name__ == "__main__":
    main()
