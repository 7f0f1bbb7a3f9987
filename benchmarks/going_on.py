"""What going on costs and keeps: one sentence at a time, with ever more words; and a tagger in another domain.

python benchmarks/going_on.py stream
python benchmarks/going_on.py domain OLD.conllu NEW.conllu OLD-TEST.conllu NEW-TEST.conllu
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import lols

TAGS = ["A", "B", "C", "D", "E"]


def sentences(first: int, count: int, length: int = 10) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences of words that were never seen before, and their tags."""
    numbers = np.arange(first, first + count * length).reshape(count, length)
    return [[f"w{n}" for n in row] for row in numbers], [
        [TAGS[(n * 2654435761 % 2**32 >> 16) % 5] for n in row] for row in numbers
    ]


def stream(sizes: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)) -> None:
    """Milliseconds of `learn_one` at several sizes of the vocabulary, a thousand sentences each."""
    tagger = lols.Tagger(progress=False)
    tagger.partial_fit(*sentences(0, 10), classes=TAGS)
    print("| words | features | learn_one, median ms | mean ms | memory, MB |\n|---|---|---|---|---|")
    seen = 100
    for size in sizes:
        while seen < size - 10_000:
            count = min(5_000, (size - 10_000 - seen) // 10 + 1)
            tagger.partial_fit(*sentences(seen, count))
            seen += 10 * count
        X, y = sentences(seen, 1_000)
        seen += 10_000
        spent = []
        for words, tags in zip(X, y, strict=True):
            began = time.perf_counter()
            tagger.learn_one(words, tags)
            spent.append(time.perf_counter() - began)
        report = tagger._stream.learner.report()
        mean, median = 1e3 * float(np.mean(spent)), 1e3 * float(np.median(spent))
        cells = (f"{len(tagger.vocabulary_):,}", f"{report['features']:,}", f"{median:.1f}", f"{mean:.1f}")
        print(f"| {' | '.join(cells)} | {report['bytes'] / 1e6:,.0f} |", flush=True)


def domain(old: str, new: str, old_test: str, new_test: str) -> None:
    """Accuracy on both test files before and after going on, and the sizes of the model files."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        paths = {state: Path(folder) / f"{state}.lols" for state in (True, False)}
        made = lols.Tagger(progress=False).fit_files(old)
        for state, path in paths.items():
            made.set_params(keep_state=state).save(path)
        sizes = {state: os.path.getsize(path) / 1e6 for state, path in paths.items()}
        print(f"model file {sizes[False]:.1f} MB, with state {sizes[True]:.1f} MB")

        def report(name: str, tagger: lols.Tagger) -> None:
            accuracy = [
                100 * tagger.evaluate_file(path, unseen="wrong").as_dict()["accuracy"] for path in (old_test, new_test)
            ]
            print(f"| {name} | {accuracy[0]:.2f} | {accuracy[1]:.2f} |", flush=True)

        print("| training | old test | new test |\n|---|---|---|")
        report("old data", made)
        report("new data only", lols.Tagger(progress=False).fit_files(new))
        report("both, in one go", lols.Tagger(progress=False).fit_files([old, new]))
        from lols.tasks.replay import ReplayedFile

        for state, name in ((True, "with state"), (False, "from the weights")):
            for replay in (None, 0.1, 0.3):
                files = [new] if replay is None else [new, ReplayedFile.read(f"{old}:{replay}")]
                loaded = lols.load(paths[state]).set_params(warm_start=True, progress=False)
                loaded.fit_files(files)
                report(f"old, then new, {name}" + ("" if replay is None else f", --replay {replay}"), loaded)


if __name__ == "__main__":
    {"stream": stream, "domain": domain}[sys.argv[1]](*sys.argv[2:])
