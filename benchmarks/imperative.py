"""Tagging as a program beside the same program against Vowpal Wabbit's Python hook: `make bench-imperative`.

The same sentences and features (`vw.hook`: word, neighbours, two-letter affixes, shape, the tag before alone, with the
word and with its suffix), the same kind of learner (a regressor of costs for each action, normalized adaptive invariant
updates, the weights as they are at the end), one pass, one process, in turns; the best of several runs counts on both
sides. Accuracy is that on the next hundred sentences.

"Hook" is written as Vowpal Wabbit's own examples are, "tuned" is the fastest equivalent that we found (`vw.hook` says
how they differ). "No keys" leaves `key` out, so that every roll-out is run to the end.

``python benchmarks/imperative.py [--tokens N] [--repeats N]``; the WSJ sample where LOLS_DATA has it, else sentences
made up like it. The hook rolls out some forty tokens a second, so that it gets few of them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import lols
from benchmarks import data, vw
from benchmarks.data import Sentence, count_tokens

ROLL_OUTS = ("none", "reference", "learned")
LEARNER: dict[str, Any] = {"learner": "csoaa", "returned": "last", "batch_size": 1}
MORE_WITHOUT = 25  # times as many tokens where nothing is rolled out


def prepared(sentence: Sentence) -> dict[str, Any]:
    """A sentence with the features of its words, which do not depend on decisions."""
    count = len(sentence.words)
    return {"words": [vw._input_features(sentence.words, i) for i in range(count)], "tags": sentence.tags}


def tagging(keyed: bool) -> Any:
    """The decoder."""

    def run(search: Any, x: Any) -> list[int]:
        tags, tag = [], -1
        for i, (word, truth) in enumerate(zip(x["words"], x["tags"], strict=True)):
            before = tag
            tag = search.predict(
                lambda: [*word, ("t", before), ("tw", before, word[0]), ("ts", before, word[4]), "bias"],  # noqa: B023
                reference=truth,
                key=(i, before) if keyed else None,
            )
            search.loss(tag != truth)
            tags.append(tag)
        return tags

    return run


def ours(sentences: list[Sentence], held: list[Sentence], labels: int, *, keyed: bool, **options: Any) -> Any:
    """Tokens a second in wall and CPU time, compilation apart, and accuracy."""
    program = lols.Program(tagging(keyed), labels)
    wall, cpu = time.perf_counter(), time.process_time()
    objects = [prepared(sentence) for sentence in sentences]
    model = lols.train(program, objects, passes=1, progress=False, **LEARNER, **options)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    compiling = model.report["seconds_compiling"]
    tokens = count_tokens(sentences)
    found = model.predict(map(prepared, held))
    right = sum(a == b for guess, s in zip(found, held, strict=True) for a, b in zip(guess, s.tags, strict=True))
    return vw.Result(right / count_tokens(held), tokens / (wall - compiling), wall - compiling, cpu - compiling, 0.0)


def first(sentences: list[Sentence], tokens: int) -> tuple[list[Sentence], list[Sentence]]:
    """The sentences that `vw.hook` takes: the first that have so many tokens, and the next hundred."""
    count = 0
    for number, sentence in enumerate(sentences):
        if count >= tokens:
            return sentences[:number], sentences[number : number + 100]
        count += len(sentence.words)
    raise SystemExit(f"there are only {count} tokens: lower --tokens")


def main() -> None:
    """Measure in turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--tokens", type=int, default=800, help="with roll-outs; without them 25 times as many")
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    corpus = data.load()
    labels = len(corpus.tags)
    table = Table(
        *("roll-outs", "system", "tokens/s", "per CPU s", "x hook", "x tuned", "accuracy"),
        title=f"{corpus.name}, {labels} tags, one pass, best of {chosen.repeats}",
    )
    results: dict[str, Any] = {}
    ours(corpus.train[:2], corpus.train[2:3], labels, keyed=True, roll_out="learned")  # compiles
    for roll_out in ROLL_OUTS:
        tokens = chosen.tokens * (MORE_WITHOUT if roll_out == "none" else 1)
        part, held = first(corpus.train, tokens)
        systems = {
            "hook": partial(vw.hook, corpus.train, labels, roll_out, tokens, tuned=False),
            "hook, tuned": partial(vw.hook, corpus.train, labels, roll_out, tokens),
            "lols": partial(ours, part, held, labels, keyed=True, roll_out=roll_out),
        }
        if roll_out != "none":
            systems["lols, no keys"] = partial(ours, part, held, labels, keyed=False, roll_out=roll_out)
        runs: dict[str, list[vw.Result]] = {name: [] for name in systems}
        for _ in range(chosen.repeats):
            for name, system in systems.items():
                runs[name].append(system())
        count = count_tokens(part)
        # The machine may be shared: CPU time is what a system itself took.
        fastest = {name: max(count / r.cpu_seconds for r in some) for name, some in runs.items()}
        for name, some in runs.items():
            best = max(some, key=lambda r: r.tokens_per_second)
            ratio, tuned = (fastest[name] / fastest[other] for other in ("hook", "hook, tuned"))
            results[f"{roll_out}, {name}"] = {
                "tokens": count,
                "tokens_per_second": best.tokens_per_second,
                "tokens_per_cpu_second": fastest[name],
                "times_the_hook": ratio,
                "times_the_tuned_hook": tuned,
                "accuracy": best.accuracy,
            }
            shown = (f"{best.tokens_per_second:,.0f}", f"{fastest[name]:,.0f}", f"{ratio:.1f}", f"{tuned:.1f}")
            table.add_row(roll_out, name, *shown, f"{100 * best.accuracy:.1f}")
    Console().print(table)
    folder = Path(__file__).resolve().parents[1] / "reports"
    folder.mkdir(exist_ok=True)
    (folder / "imperative.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
