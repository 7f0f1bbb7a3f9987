"""The tagger beside its competitors, on the same files in one command: `make bench-tagging`.

Accuracy on the published splits, mean and standard deviation over seeds, five passes; the speed of training from file
to model and of tagging from file to file, as ratios to Vowpal Wabbit's command line; what long sentences cost.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import corpora, vw
from benchmarks.crfsuite import chunk_features, crfsuite, tag_features
from benchmarks.data import count_tokens, data_directory
from benchmarks.spans import span_scores
from lols import Tagger
from lols.tasks.tagging.files import FileColumns, read_tagged

LOLS = [str(Path(sys.executable).with_name("lols"))]
REPEATS = 20


def data() -> Path:
    """The folder of the real data; this benchmark has no meaning without it."""
    found = data_directory()
    if found is None:
        raise SystemExit("the data sets are not here: set LOLS_DATA to the folder that holds them")
    return found


def spread(values: list[float]) -> str:
    """Mean and standard deviation, in per cent."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{100 * statistics.mean(values):.2f} ± {100 * deviation:.2f}"


def ours(train: str, test: str, columns: FileColumns, seeds: int, **options: Any) -> dict[str, list[float]]:
    """Accuracy, and F1 for spans, of the tagger with its defaults, for several seeds."""
    learned, held = read_tagged([data() / train], columns), read_tagged([data() / test], columns)
    made: dict[str, list[float]] = {"accuracy": [], "f1": []}
    for seed in range(seeds):
        tagger = Tagger(seed=seed, progress=False, threads=2, **options).fit_columns(learned.corpus, learned.labels)
        scores = tagger.evaluate_columns(held.corpus, held.labels)
        made["accuracy"].append(scores.accuracy)
        if scores.spans is not None:
            made["f1"].append(scores.spans.f1)
    return made


def accuracy(console: Console, seeds: int) -> dict[str, Any]:
    """The tables of accuracy."""
    results: dict[str, Any] = {}
    table = Table("data", "system", "accuracy", "span F1", title=f"Five passes, {seeds} seeds")
    wsj, xpos = ("wsj-train.conll.gz", "wsj-test.conll.gz"), FileColumns(label="xpos", use={})

    def row(data_set: str, system: str, found: dict[str, list[float]]) -> None:
        results[f"{data_set}, {system}"] = found
        table.add_row(data_set, system, spread(found["accuracy"]), spread(found["f1"]) if found["f1"] else "")

    for roll_out in ("reference", "mixture", "learned"):
        row("WSJ", f"lols, {roll_out} roll-outs", ours(*wsj, xpos, seeds, roll_out=roll_out))
    row("EWT", "lols", ours("ewt-train.conllu.gz", "ewt-test.conllu.gz", xpos, seeds))
    chunks = FileColumns(label="3", use={"pos": "2"})
    row("CoNLL-2000", "lols", ours("conll2000-train.txt.gz", "conll2000-test.txt.gz", chunks, seeds))
    row("CRAFT", "lols", ours("craft-train.conllu.gz", "craft-test.conllu.gz", xpos, seeds))
    for name, corpus in (
        ("WSJ", corpora.wsj),
        ("EWT", corpora.ewt),
        ("CoNLL-2000", corpora.conll2000),
        ("CRAFT", corpora.craft),
    ):
        loaded = corpus()
        features = chunk_features if name == "CoNLL-2000" else tag_features
        found: dict[str, list[float]] = {"accuracy": [], "f1": []}
        for seed in range(1, 1 + min(seeds, 3)):
            made = crfsuite(loaded.train, loaded.test, features=features, seed=seed)
            found["accuracy"].append(made.accuracy)
            if name == "CoNLL-2000":
                found["f1"].append(span_scores([s.tags for s in loaded.test], made.predictions).f1)
        row(name, "CRFsuite, averaged perceptron", found)
    with tempfile.TemporaryDirectory() as folder:
        parts, tags = corpora.numbered(corpora.wsj().train, corpora.wsj().test)
        for roll_out in ("reference", "mixture", "learned"):
            made_by_vw = vw.builtin(parts[0], parts[1], len(tags), "learned", roll_out, 5, Path(folder))
            row("WSJ", f"Vowpal Wabbit, {roll_out} roll-outs", {"accuracy": [made_by_vw.accuracy], "f1": []})
    console.print(table)
    return results


def run(*arguments: str) -> dict[str, Any]:
    """One command of ours in a process of its own, and the JSON that it prints."""
    done = subprocess.run([*LOLS, *arguments, "--json"], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def training_speed(console: Console) -> dict[str, Any]:
    """One pass with mixture roll-outs, one thread, from file to model."""
    file = str(data() / "wsj-train.conll.gz")
    parts, tags = corpora.numbered(corpora.wsj().train, corpora.wsj().test)
    table = Table("system", "tokens/s", "ratio", "accuracy", title="Training, mixture roll-outs, one pass, one thread")
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder) / "model.lols")
        arguments = ("train", "tagger", file, "--column", "xpos", "--passes", "1", "-o", model)
        run(*arguments)  # compiles, if need be
        mine = [run(*arguments)["tokens_per_second"] for _ in range(5)]
        score = run("evaluate", model, str(data() / "wsj-test.conll.gz"))["accuracy"]
        theirs = [vw.builtin(parts[0], parts[1], len(tags), "learned", "mixture", 1, Path(folder)) for _ in range(2)]
    best = max(t.tokens_per_second for t in theirs)
    middle = statistics.median(mine)
    table.add_row("Vowpal Wabbit, built-in", f"{best:,.0f}", "1", f"{100 * theirs[0].accuracy:.2f}")
    table.add_row("lols, median of 5", f"{middle:,.0f}", f"{middle / best:.1f}", f"{100 * score:.2f}")
    table.add_row("lols, best of 5", f"{max(mine):,.0f}", f"{max(mine) / best:.1f}", "")
    console.print(table)
    return {"lols": mine, "vw": best}


def tagging_speed(console: Console) -> dict[str, Any]:
    """Tagging CRAFT's test file, twenty times over, from file to file; start-up apart."""
    loaded = corpora.craft()
    parts, tags = corpora.numbered(loaded.train, loaded.test)
    tokens = REPEATS * count_tokens(parts[1])
    table = Table("system", "tokens/s", "ratio", "start-up s", title=f"Tagging {tokens:,} tokens from file to file")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vw.builtin(parts[0], parts[1], len(tags), "learned", "none", 1, folder)
        vw.write(folder / "long.vw", parts[1], repeats=REPEATS, labels=False)
        theirs = max(
            (vw.tag_file(folder / "train.vw.model", folder / "long.vw", folder) for _ in range(2)),
            key=lambda t: t.tokens_per_second,
        )
        _repeat(data() / "craft-test.conllu.gz", folder / "long.conllu")
        model = str(folder / "craft.lols")
        run("train", "tagger", str(data() / "craft-train.conllu.gz"), "--column", "xpos", "--passes", "1", "-o", model)
        command = ("predict", model, str(folder / "long.conllu"), "-o", str(folder / "out.conllu"))
        run(*command)
        mine = {
            threads: max(
                (run(*command, "--threads", str(threads)) for _ in range(3)), key=lambda r: r["tokens_per_second"]
            )
            for threads in (1, 2)
        }
    table.add_row("Vowpal Wabbit", f"{theirs.tokens_per_second:,.0f}", "1", f"{theirs.startup_seconds:.2f}")
    for threads, found in mine.items():
        ratio = found["tokens_per_second"] / theirs.tokens_per_second
        label = f"lols, {threads} thread" + ("s" if threads > 1 else "")
        table.add_row(label, f"{found['tokens_per_second']:,.0f}", f"{ratio:.1f}", f"{found['seconds_compiling']:.2f}")
    console.print(table)
    return {"vw": theirs._asdict(), "lols": mine}


def _repeat(source: Path, target: Path) -> None:
    import gzip

    content = gzip.decompress(source.read_bytes())
    with open(target, "wb") as out:
        for _ in range(REPEATS):
            out.write(content)


def length_cost(console: Console) -> dict[str, float]:
    """What a token costs when sentences are concatenated in tens: roll-outs that meet are merged."""
    held = read_tagged([data() / "wsj-train.conll.gz"], FileColumns(label="xpos", use={}))
    whole = held.corpus.offsets
    long = held.corpus._replace(offsets=whole[sorted({*range(0, whole.size, 10), whole.size - 1})])
    seconds: dict[str, float] = {}
    for name, corpus in (("as they are", held.corpus), ("in tens", long)):
        for _ in range(4):
            tagger = Tagger(passes=1, progress=False, batch_size=32 if corpus is held.corpus else 3)
            report = tagger.fit_columns(corpus, held.labels).model_.report
            spent = report["seconds_total"] - report["seconds_compiling"]
            seconds[name] = min(seconds.get(name, spent), spent)
    ratio = seconds["in tens"] / seconds["as they are"]
    console.print(f"a token of sentences concatenated in tens costs {ratio:.2f} times as much to train on")
    return {**seconds, "ratio": ratio}


def main() -> None:
    """Run all, or what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], "accuracy", "training", "tagging", "length"], default=[])
    parser.add_argument("--seeds", type=int, default=5)
    chosen = parser.parse_args()
    console = Console()
    if shutil.which(LOLS[0]) is None:
        raise SystemExit(f"{LOLS[0]} is not there: install the project first")
    work = {
        "training": training_speed,
        "tagging": tagging_speed,
        "length": length_cost,
        "accuracy": lambda out: accuracy(out, chosen.seeds),
    }
    results = {name: function(console) for name, function in work.items() if not chosen.parts or name in chosen.parts}
    target = Path(__file__).resolve().parents[1] / "reports" / "tagging.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(results, indent=1, default=str))
    console.print(f"all figures: {target.name} in reports/")


if __name__ == "__main__":
    main()
