"""The parser beside its competitors, on the same files in one command: ``python benchmarks/parsing.py [PART ...]``.

accuracy: attachment scores on the published splits, mean and standard deviation over seeds. table4: the paper's
comparison of strategies under three teachers. training, parsing: speed from file to model and from file to file, as
ratios to Vowpal Wabbit's command line. beam: what wider search gives and costs. scaling: threads, and long sentences.

``--quick`` takes the first sentences of each file and one or two repeats: it shows that all works, and no figure of it
means anything. Figures go to reports/parsing.json part by part, as they come. The machine is shared: where others run
beside, trust the figures per CPU second, and the best of several runs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import corpora, vw
from benchmarks.tagging import LOLS, data, spread
from lols import Parser
from lols.tasks.parsing.files import ParserColumns, Treebank, read_treebank, treebank

QUICK = {"train": 150, "dev": 40, "test": 40}  # sentences
BEAMS = (1, 2, 4, 8, 16)
TEACHERS = ("optimal", "suboptimal", "bad")
ROLL_OUTS = ("reference", "mixture", "learned")
# UAS and LAS on UD 2.3's English-EWT, gold words, with pretrained embeddings: README of the UDPipe models 181115,
# http://hdl.handle.net/11234/1-2898; the system is Straka & Straková 2017, CoNLL shared task, pages 88-99.
UDPIPE = {"gold tags": (87.7, 85.8), "own tags": (84.5, 81.2)}
# Chang et al. 2015, Table 4: UAS on the whole Penn Treebank, which is not our data; by roll-in, then by roll-out.
PAPER = {
    "optimal": {"reference": (87.2, 89.7, 88.2), "learned": (90.7, 90.5, 86.9), "searn": 84.0},
    "suboptimal": {"reference": (83.3, 87.2, 81.6), "learned": (87.1, 90.2, 86.8), "searn": 81.1},
    "bad": {"reference": (68.7, 65.4, 66.7), "learned": (75.8, 89.4, 87.5), "searn": 63.4},
}


class Done(NamedTuple):
    """What a command of ours printed, and what its whole process took."""

    json: dict[str, Any]
    wall: float
    cpu: float


class Speed(NamedTuple):
    """Tokens a second of several runs: by the clock, start-up apart, and by CPU time, start-up apart."""

    wall: list[float]
    cpu: list[float]
    startup: float = 0.0


class Bench:
    """Where the files are, and how much is asked for."""

    NAME = "parsing"

    def __init__(self, folder: Path, chosen: argparse.Namespace):
        self.console, self.folder = Console(), folder
        self.quick, self.learner, self.prune = chosen.quick, chosen.learner, getattr(chosen, "prune", False)
        self.seeds = min(chosen.seeds, 2) if self.quick else chosen.seeds
        self.repeats = 2 if self.quick else chosen.repeats

    def file(self, name: str) -> Path:
        """A data file; its first sentences only, where it has to be quick."""
        if not self.quick:
            return data() / name
        target = self.folder / name.removesuffix(".gz")
        part = name.split(".")[0].split("-")[1]
        return self.write(target, corpora.blocks(data() / name)[: QUICK[part]])

    @staticmethod
    def write(target: Path, sentences: list[str]) -> Path:
        """Write sentences to a file."""
        target.write_text("\n\n".join([*sentences, ""]), encoding="utf-8")
        return target

    def treebank(self, name: str) -> Treebank:
        """A file as columns and trees."""
        return treebank(read_treebank([self.file(name)], ParserColumns()), ParserColumns())

    def path(self, name: str) -> str:
        """A file of this run that is thrown away."""
        return str(self.folder / name)

    def keep(self, part: str, name: str, found: Any) -> None:
        """Write a figure beside those that are known already."""
        target = Path(__file__).resolve().parents[1] / "reports" / f"{self.NAME}{'-quick' if self.quick else ''}.json"
        target.parent.mkdir(exist_ok=True)
        known = json.loads(target.read_text()) if target.exists() else {}
        known.setdefault(part, {})[name] = found
        target.write_text(json.dumps(known, indent=1, default=str))
        self.say(f"{part}: {name}")

    @staticmethod
    def say(words: str) -> None:
        """Progress, for whoever waits."""
        print(f"{time.strftime('%H:%M:%S')} {words}", file=sys.stderr, flush=True)


def lols(*arguments: str) -> Done:
    """Run one command of ours in a process of its own."""
    before, began = os.times(), time.perf_counter()
    done = subprocess.run([*LOLS, *arguments, "--json"], capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - began, os.times()
    if done.returncode:
        raise RuntimeError(f"lols {' '.join(arguments)} failed:\n{done.stderr[-2000:]}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Done(json.loads(done.stdout), wall, cpu)


def scores(parser: Parser, held: Treebank) -> dict[str, float]:
    """UAS, LAS and CLAS on a treebank."""
    kept = {name: held.corpus.columns[name] for name in parser.task_.columns}
    found = parser.evaluate_columns(held.corpus._replace(columns=kept), *held.trees)
    return {"uas": found.uas, "las": found.las, "clas": found.clas}


def fitted(data_set: Treebank, **options: Any) -> Parser:
    """A parser, trained on a treebank with two threads."""
    return Parser(progress=False, **{"threads": 2, **options}).fit_columns(data_set.corpus, *data_set.trees)


# --- accuracy ---


def accuracy(bench: Bench) -> None:
    """Attachment scores, gold tags unless said otherwise, punctuation counted."""
    table = Table("data", "system", "UAS", "LAS", "CLAS", title=f"Defaults, {bench.seeds} seeds, per cent")

    def row(data_set: str, system: str, runs: list[dict[str, float]], labelled: bool = True) -> None:
        bench.keep("accuracy", f"{data_set}, {system}", runs)
        shown = ("uas", "las", "clas") if labelled else ("uas",)
        table.add_row(data_set, system, *(spread([run[name] for run in runs]) for name in shown))

    def ours(name: str, suffix: str, seeds: int) -> list[dict[str, float]]:
        train, held = bench.treebank(f"{name}-train.{suffix}.gz"), bench.treebank(f"{name}-test.{suffix}.gz")
        return [scores(fitted(train, seed=seed), held) for seed in range(seeds)]

    row("WSJ", "lols", ours("wsj", "conll", bench.seeds), labelled=False)
    train, test = (corpora.trees(bench.file(f"wsj-{part}.conll.gz")) for part in ("train", "test"))
    for roll_out, passes in (("none", 5), ("mixture", 1)):
        made = vw.parser(train, test, "learned", roll_out, passes, bench.folder)
        words = f"Vowpal Wabbit, learned / {roll_out}, {passes} pass{'es' if passes > 1 else ''}, repaired"
        row("WSJ", words, [{"uas": made.accuracy, "seconds": made.seconds}], labelled=False)
    row("EWT", "lols", ours("ewt", "conllu", bench.seeds))
    published(table, "EWT 2.3", "gold tags")
    runs = pipeline(bench)
    if runs:
        row("EWT, own tags", "lols", runs)
    published(table, "EWT 2.3, own tags", "own tags")
    row("CRAFT", "lols", ours("craft", "conllu", min(bench.seeds, 1 if bench.quick else 2)))
    bench.console.print(table)


def published(table: Table, data_set: str, tags: str) -> None:
    """A row of UDPipe's figures."""
    table.add_row(data_set, "UDPipe 1.2 (published)", *(f"{figure:.1f}" for figure in UDPIPE[tags]), "")


def pipeline(bench: Bench) -> list[dict[str, float]]:
    """EWT with tags that the pipeline predicts itself, by the command line; empty where there is no such command."""
    known = subprocess.run([*LOLS, "train", "pipeline", "--help"], capture_output=True, check=False)
    if known.returncode:
        bench.console.print("EWT with predicted tags is left out: there is no `lols train pipeline` yet")
        return []
    train, dev, test = (str(bench.file(f"ewt-{part}.conllu.gz")) for part in ("train", "dev", "test"))
    runs = []
    for seed in range(bench.seeds):
        model = bench.path("pipeline.lols")
        lols("train", "pipeline", train, "--dev", dev, "--seed", str(seed), "-o", model)
        runs.append(figures(lols("evaluate", model, test).json))
        bench.say(f"pipeline, seed {seed}: {runs[-1]}")
    return runs


def figures(found: dict[str, Any], wanted: tuple[str, ...] = ("uas", "las", "clas")) -> dict[str, float]:
    """Scores out of what `lols evaluate --json` printed; a pipeline may have them one level down."""
    inner = [value for value in found.values() if isinstance(value, dict)]
    return {name: next(float(level[name]) for level in (found, *inner) if name in level) for name in wanted}


# --- the paper's Table 4 ---


def table4(bench: Bench) -> None:
    """Roll-ins by roll-outs under three teachers, Searn, and LOLS that finds its own beta.

    All actions are rolled out, as Algorithm 1 is printed: the parser's default prunes under the optimal teacher only,
    so that teachers could not be compared, and spoils Searn, whose learner has no likes in the first pass.
    """
    train, held = bench.treebank("wsj-train.conll.gz"), bench.treebank("wsj-test.conll.gz")
    passes, prune = 1 if bench.quick else 5, "auto" if bench.prune else None
    title = f"UAS on the WSJ sample (the paper's), {bench.learner}, passes: {passes}, seeds: {bench.seeds}"
    table = Table("teacher", "roll-in", *ROLL_OUTS, title=title)

    def cell(name: str, paper: float | None, **options: Any) -> str:
        began = time.perf_counter()
        options |= {"learner": bench.learner, "passes": passes, "prune": prune}
        found = [scores(fitted(train, seed=seed, **options), held)["uas"] for seed in range(bench.seeds)]
        name += f", {bench.learner}" + (", pruned" if bench.prune else "")
        bench.keep("table4", name, {"uas": found, "seconds": time.perf_counter() - began})
        return spread(found) + ("" if paper is None else f" ({paper})")

    for teacher in TEACHERS:
        known: dict[str, Any] = PAPER[teacher]
        for roll_in in ("reference", "learned"):
            cells = [
                cell(f"{teacher}, {roll_in} / {out}", paper, reference=teacher, roll_in=roll_in, roll_out=out)
                for out, paper in zip(ROLL_OUTS, known[roll_in], strict=True)
            ]
            table.add_row(teacher, roll_in, *cells)
        own = cell(f"{teacher}, learned / mixture, beta auto", None, reference=teacher, beta="auto")
        table.add_row(teacher, "learned, β auto", "", own, "")
        searn = cell(f"{teacher}, searn", known["searn"], reference=teacher, algorithm="searn")
        table.add_row(teacher, "Searn", "", searn, "", end_section=True)
    bench.console.print(table)


# --- speed ---


def speeds(title: str, rows: dict[str, tuple[Speed, str]]) -> Table:
    """The first row is what the others are compared with."""
    columns = ("median", "best", "per CPU s", "ratio, median", "ratio, best", "ratio, CPU", "start-up s", "UAS")
    table = Table("system, tokens/s", *columns, title=title)
    base = next(iter(rows.values()))[0]
    for name, (speed, uas) in rows.items():
        middle, best, cpu = statistics.median(speed.wall), max(speed.wall), statistics.median(speed.cpu)
        against = statistics.median(base.wall), max(base.wall), statistics.median(base.cpu)
        ratios = (f"{mine / theirs:.1f}" for mine, theirs in zip((middle, best, cpu), against, strict=True))
        table.add_row(name, *(f"{x:,.0f}" for x in (middle, best, cpu)), *ratios, f"{speed.startup:.2f}", uas)
    return table


def timed(arguments: list[str], first: list[str], repeats: int) -> tuple[Speed, list[Done]]:
    """Repeat a command of ours; what it does to one sentence, `first`, is its start-up."""
    lols(*arguments)  # compiles, if need be
    tiny = [lols(*first) for _ in range(2)]
    runs = [lols(*arguments) for _ in range(repeats)]
    startup, startup_cpu = min(t.wall for t in tiny), min(t.cpu for t in tiny)
    tokens = runs[0].json["tokens"]
    cpu = [tokens / max(run.cpu - startup_cpu, 0.01) for run in runs]
    return Speed([run.json["tokens_per_second"] for run in runs], cpu, startup), runs


def training(bench: Bench) -> None:
    """One pass, features included. By CPU time also reading is counted, of both systems."""
    train, test = bench.file("wsj-train.conll.gz"), bench.file("wsj-test.conll.gz")
    first = bench.write(bench.folder / "first.conll", corpora.blocks(train)[:1])
    trees = corpora.trees(train), corpora.trees(test)
    for roll_out in ("mixture", "reference"):
        half = max(1, bench.repeats // 2)
        theirs = [vw.parser(*trees, "learned", roll_out, 1, bench.folder) for _ in range(half)]
        bench.say(f"Vowpal Wabbit, {roll_out} roll-outs")
        rows: dict[str, tuple[Speed, str]] = {}
        tokens = sum(len(tree.words) for tree in trees[0])
        by_cpu = [tokens / made.cpu_seconds for made in theirs]
        of_vw = Speed([made.tokens_per_second for made in theirs], by_cpu, theirs[0].startup_seconds)
        rows["Vowpal Wabbit"] = (of_vw, f"{100 * theirs[0].accuracy:.2f}")
        for threads in (1, 2):
            model = bench.path("trained.lols")
            options = ["--passes", "1", "--roll-out", roll_out, "--threads", str(threads), "-o"]
            command = ["train", "parser", str(train), *options, model]
            speed, _ = timed(command, ["train", "parser", str(first), *options, bench.path("tiny")], bench.repeats)
            uas = lols("evaluate", model, str(test)).json["uas"]
            rows[f"lols, {threads} thread{'s' if threads > 1 else ''}"] = (speed, f"{100 * uas:.2f}")
            bench.say(f"lols, {roll_out} roll-outs, {threads} thread(s)")
        bench.keep("training", roll_out, {name: speed._asdict() for name, (speed, _) in rows.items()})
        bench.console.print(speeds(f"Training, learned / {roll_out}, one pass, {tokens:,} tokens", rows))
        one, two = rows["lols, 1 thread"][0].wall, rows["lols, 2 threads"][0].wall
        gain = statistics.median(two) / statistics.median(one), max(two) / max(one)
        bench.console.print(f"two threads are {gain[0]:.2f} (median) and {gain[1]:.2f} (best) times as fast as one\n")


def parsing(bench: Bench) -> None:
    """The WSJ test file many times over, from file to file; both systems' models have seen one pass."""
    times = 2 if bench.quick else 100
    train, test = bench.file("wsj-train.conll.gz"), bench.file("wsj-test.conll.gz")
    long = bench.write(bench.folder / "long.conll", corpora.blocks(test) * times)
    first = bench.write(bench.folder / "first.conll", corpora.blocks(test)[:1])
    trees = corpora.trees(train), corpora.trees(test)
    made = vw.parser(*trees, "learned", "none", 1, bench.folder)
    vw.write_trees(bench.folder / "long.vw", trees[1], repeats=times)
    model = bench.path("parser.lols")
    lols("train", "parser", str(train), "--passes", "1", "-o", model)
    uas = lols("evaluate", model, str(test)).json["uas"]
    tokens = times * sum(len(tree.words) for tree in trees[1])
    theirs = [
        vw.tag_file(bench.folder / "train.vw.model", bench.folder / "long.vw", bench.folder)
        for _ in range(max(1, bench.repeats - 2))
    ]
    by_cpu = [run.tokens_per_second / run.cores for run in theirs]
    of_vw = Speed([run.tokens_per_second for run in theirs], by_cpu, min(run.startup_seconds for run in theirs))
    rows = {"Vowpal Wabbit": (of_vw, f"{100 * made.accuracy:.2f}")}
    for threads in (1, 2):
        tail = ["-o", bench.path("parsed.conll"), "--threads", str(threads)]
        speed, _ = timed(["predict", model, str(long), *tail], ["predict", model, str(first), *tail], bench.repeats)
        rows[f"lols, {threads} thread{'s' if threads > 1 else ''}"] = (speed, f"{100 * uas:.2f}")
    bench.keep("parsing", "speed", {name: speed._asdict() for name, (speed, _) in rows.items()})
    bench.console.print(speeds(f"Parsing {tokens:,} tokens from file to file", rows))


# --- beam, threads, length ---


def beam(bench: Bench) -> None:
    """What a beam gives and what it costs: one seed, one thread, strings to trees in memory."""
    table = Table("data", "beam", "UAS", "LAS", "heads unlike greedy", "tokens/s", title="Beam search, one thread")
    for name, train, test in (
        ("EWT dev", "ewt-train.conllu.gz", "ewt-dev.conllu.gz"),
        ("WSJ test", "wsj-train.conll.gz", "wsj-test.conll.gz"),
    ):
        held = bench.treebank(test)
        parser = fitted(bench.treebank(train), threads=1, passes=1 if bench.quick else 5)
        corpus = held.corpus._replace(columns={k: held.corpus.columns[k] for k in parser.task_.columns})
        greedy = parser.predict_columns(corpus).heads
        for width in BEAMS:
            parser.set_params(beam=width)
            found, seconds = scores(parser, held), []
            for _ in range(bench.repeats):
                began = time.perf_counter()
                heads = parser.predict_columns(corpus).heads
                seconds.append(time.perf_counter() - began)
            fast, changed = corpus.tokens / min(seconds), int((heads != greedy).sum())
            bench.keep("beam", f"{name}, {width}", found | {"tokens_per_second": fast, "changed": changed})
            shares = (f"{100 * found[k]:.2f}" if k == "uas" or name[0] == "E" else "" for k in ("uas", "las"))
            table.add_row(name, str(width), *shares, f"{changed:,}", f"{fast:,.0f}", end_section=width == BEAMS[-1])
    bench.console.print(table)


def scaling(bench: Bench) -> None:
    """Training by the length of sentences: what a token costs when its sentence is longer, one pass, one thread."""
    sentences = sorted(corpora.blocks(bench.file("wsj-train.conll.gz")), key=lambda block: block.count("\n"))
    table = Table("roll-out", "words a sentence", "tokens/s", "cost of a token", title="Training by length, best run")
    for roll_out in ROLL_OUTS:
        base = 0.0
        for k in range(4):
            part = sentences[k * len(sentences) // 4 : (k + 1) * len(sentences) // 4]
            file = bench.write(bench.folder / "part.conll", part)
            command = ["train", "parser", str(file), "--passes", "1", "--roll-out", roll_out, "-o", bench.path("m")]
            best = max((lols(*command).json for _ in range(bench.repeats)), key=lambda run: run["tokens_per_second"])
            base = base or best["tokens_per_second"]
            mean, cost = best["tokens"] / len(part), base / best["tokens_per_second"]
            bench.keep("scaling", f"{roll_out}, {mean:.1f} words", best["tokens_per_second"])
            figures = (f"{mean:.1f}", f"{best['tokens_per_second']:,.0f}", f"{cost:.2f}")
            table.add_row(roll_out, *figures, end_section=k == 3)
    bench.console.print(table)


PARTS: dict[str, Callable[[Bench], None]] = {
    "training": training,
    "parsing": parsing,
    "beam": beam,
    "scaling": scaling,
    "accuracy": accuracy,
    "table4": table4,
}


def options(parts: dict[str, Callable[[Any], None]], about: str | None, table: str) -> argparse.ArgumentParser:
    """What can be asked of a benchmark that has these parts, and a table of strategies among them."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *parts], default=[], metavar="PART", help=", ".join(parts))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5, help="runs of a command whose time counts")
    parser.add_argument("--learner", default="hinge", help=f"of {table}: hinge, or csoaa as in the paper")
    parser.add_argument("--quick", action="store_true", help="little data: does it all run?")
    return parser


def run_parts(parts: dict[str, Callable[[Any], None]], bench: type[Bench], chosen: argparse.Namespace) -> None:
    """Run all parts, or those that are asked for."""
    if shutil.which(LOLS[0]) is None:
        raise SystemExit(f"{LOLS[0]} is not there: install the project first")
    for name, part in parts.items():
        if not chosen.parts or name in chosen.parts:
            with tempfile.TemporaryDirectory() as folder:
                part(bench(Path(folder), chosen))


def main() -> None:
    """Run all, or what is asked for."""
    parser = options(PARTS, __doc__, "table4")
    parser.add_argument("--prune", action="store_true", help="of table4: prune as the parser does by default")
    run_parts(PARTS, Bench, parser.parse_args())


if __name__ == "__main__":
    main()
