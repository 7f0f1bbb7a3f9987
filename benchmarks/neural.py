"""The neural parser on English-EWT under three teachers: ``python benchmarks/neural.py [TEACHER ...]``.

For each teacher and seed it trains with gold tags, prints every pass as it ends, and UAS and LAS on the test part for
the pass that was best on the dev part. Tokens a second are those of whole passes, searching and learning, and of
parsing from columns of strings to trees. The second pass is measured in parts, which slows it down on a GPU, and its
speed is not counted: search (encoder, transfer, scoring, and the rest, which is stepping in kernels) and learning.

``--speed`` measures nothing else: the first pass is given apart, each pass also in CPU seconds, with steps as large as
on all sentences whatever ``--sentences`` says. Before that it prints what the speed may depend on: threads, load,
clocks, MPS; and after it what one batch does, operation by operation, how many kernels it starts on a GPU, how long
starting one takes, how often the CPU waits, and how long the GPU is busy. ``--pageable`` copies to the GPU from memory
that is not pinned, and ``--in-turn`` never searches a batch while the network learns from the one before, to compare.
On two cores, in under four minutes::

    python benchmarks/neural.py optimal --speed --device cpu --sentences 2048 --passes 2

``--words`` parses words alone, and ``--pipeline`` trains taggers first and gives the parser their tags. ``--table4``
is Table 4 of the paper with a neural policy: UAS on the WSJ sample for all teachers, roll-ins and roll-outs.

``--quick`` takes the first sentences and a small network: it shows that all works, and no figure of it means anything.
Results go to reports/neural.json as they come.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch

from benchmarks.data import data_directory
from lols import Parser, Pipeline, Tagger
from lols.contract.choosing import some
from lols.tasks.parsing.files import ParserColumns, Treebank, read_treebanks
from lols.tasks.tokens import neural
from lols.tasks.tokens.corpus import Corpus
from lols.torch import batches

TEACHERS = ("optimal", "suboptimal", "bad")
PARTS = ("train", "test")
PROFILED = 2  # the pass that is measured in parts
SPEED: dict[str, Any] = {"batch_size": 1024, "steps": 16}  # what all sentences of EWT are trained with
QUICK: dict[str, Any] = {"width": 32, "layers": 1, "passes": 3}


class Run:
    """One training: a teacher and a seed."""

    def __init__(self, parser: Parser, data: dict[str, Treebank], until: float, beam: int = 1, speed: bool = False):
        self.parser, self.data, self.until, self.beam, self.speed = parser, data, until, beam, speed
        self.passes: list[dict[str, Any]] = []
        self.best: Any = None

    def train(self) -> dict[str, Any]:
        """Train, and evaluate the best pass on the test part."""
        parser, held = self.parser, self.data["train"]
        prepared = prepare_trees(parser, held)
        self.task = parser._task(held.corpus, prepared)
        trainer = parser._trainer(self.task, held.corpus.offsets.size - 1)
        self.policy: Any = trainer.policy.asked
        examples = self.task.examples(held.corpus, prepared.trees)
        trainer.warm_up(self.task.examples(first(held.corpus, 8), first_trees(prepared.trees, held.corpus, 8)))
        if self.speed:
            with trainer.new_policy().driver(self.task.space, examples, threads=trainer.threads) as driver:
                print(f"  threads: {driver.threads} of lols share a level", flush=True)
        self.start_clocks()
        model = trainer.fit(examples, progress=False, after_pass=self)
        test = self.scores(self.best or model, "test")
        if self.beam > 1:
            wide = self.scores(self.best or model, "test", self.beam)
            print(f"  a beam of {self.beam}: test UAS {100 * wide['uas']:.2f} LAS {100 * wide['las']:.2f}", flush=True)
        if self.speed:
            trace_one_batch(trainer, examples)
        plain = [p["tokens_per_second"] for p in self.passes if not p["seconds"]]
        return {"passes": self.passes, "test": test, "tokens_per_second": statistics.median(plain[1:] or plain)}

    def start_clocks(self) -> None:
        """Measure from here on."""
        self.began, self.cpu_began = time.perf_counter(), time.process_time()
        self.segments = cuda_segments()

    def __call__(self, number: int, model: Any) -> bool:
        """Print a pass; True if the time is up."""
        spent, cpu = time.perf_counter() - self.began, time.process_time() - self.cpu_began
        tokens = self.data["train"].corpus.tokens
        entry = {"pass": number + 1, "tokens_per_second": tokens / spent, "seconds": dict(self.policy.seconds or {})}
        entry |= {"cpu_seconds": cpu, "new_segments": cuda_segments() - self.segments}
        if entry["seconds"]:
            entry["seconds"]["stepping"] = spent - sum(entry["seconds"].values())
        entry |= {"dev": self.scores(model, "dev"), "progressive_loss": model.report["progressive_loss"][-1]}
        if self.best is None or entry["dev"]["las"] > max(p["dev"]["las"] for p in self.passes):
            self.best = model
        self.passes.append(entry)
        dev = entry["dev"]
        print(
            f"  pass {number + 1:2}: {spent:6.1f} s, {entry['tokens_per_second']:8,.0f} tokens/s; dev UAS "
            f"{100 * dev['uas']:.2f} LAS {100 * dev['las']:.2f}, parsing {dev['tokens_per_second']:8,.0f} tokens/s",
            flush=True,
        )
        if self.speed:
            print(
                f"           {cpu:.1f} CPU seconds, {tokens / cpu:,.0f} tokens in each; memory of the GPU was taken "
                f"{entry['new_segments']} times; load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
        for name, seconds in entry["seconds"].items():
            print(f"           {name:<9} {seconds:6.1f} s, {100 * seconds / spent:4.1f} %", flush=True)
        self.policy.seconds = {} if number + 2 == PROFILED else None
        self.start_clocks()
        return time.time() > self.until

    def scores(self, model: Any, part: str, beam: int = 1) -> dict[str, float]:
        """UAS, LAS and speed on a part of the treebank."""
        held = self.data[part]
        began = time.perf_counter()
        trees = self.task.parsing(held.corpus, beam)(model)
        spent = time.perf_counter() - began
        found = self.parser._scores(self.task, trees, held.corpus, *held.trees)
        return {"uas": found.uas, "las": found.las, "tokens_per_second": held.corpus.tokens / spent}


def cuda_segments() -> int:
    """How often PyTorch has taken memory of the GPU so far."""
    return int(torch.cuda.memory_stats()["segment.all.allocated"]) if torch.cuda.is_available() else 0


def conditions() -> None:
    """Print what the speed may depend on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    names = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "MKL_NUM_THREADS")
    named = [f"{name}={os.environ[name]}" for name in (*names, "CUDA_LAUNCH_BLOCKING") if name in os.environ]
    threads = f"{torch.get_num_threads()} threads of PyTorch, {torch.get_num_interop_threads()} between operations"
    print(f"{cores} cores, load {os.getloadavg()[0]:.1f}; {threads}; {', '.join(named) or 'no variable set'}")
    if not torch.cuda.is_available():
        return
    pipe = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))
    flags = f"cuDNN {torch.backends.cudnn.version()}, benchmark {torch.backends.cudnn.benchmark}"
    print(f"MPS: {(pipe / 'control').exists()}; {flags}; {torch.cuda.get_device_properties(0)}")
    fields = "clocks.sm,clocks.mem,clocks.max.sm,power.draw,pstate,utilization.gpu,compute_mode"
    try:
        asked = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv"]
        print(subprocess.run(asked, capture_output=True, text=True, check=True, timeout=20).stdout, flush=True)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"nvidia-smi: {error}", flush=True)


def trace_one_batch(trainer: Any, examples: Any) -> None:
    """Search a batch and learn from it under PyTorch's profiler, and print what took the time."""
    from torch.profiler import ProfilerActivity, profile

    twin = copy.copy(trainer)
    twin.policy, twin.passes = copy.deepcopy(trainer.policy), 1
    one = some(examples, np.arange(min(SPEED["batch_size"], len(examples))))
    kinds = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * torch.cuda.is_available()
    began = time.perf_counter()
    twin.fit(one, progress=False)
    plain = time.perf_counter() - began
    with profile(activities=kinds) as traced:
        twin.fit(one, progress=False)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    found = traced.key_averages()
    print(f"one batch of {len(one)} sentences, {SPEED['steps']} steps: {plain:.2f} s without the profiler")
    calls = [each for each in found if each.key.startswith(("cudaLaunch", "cuLaunch", "cudaMemcpy", "cudaStreamSync"))]
    for each in calls:
        mean = each.self_cpu_time_total / each.count
        print(f"  {each.key:<24} {each.count:8,} times, {mean:8.1f} µs each, {each.self_cpu_time_total / 1e6:.2f} s")
    if torch.cuda.is_available():
        busy = sum(each.self_device_time_total for each in found) / 1e6
        print(f"  the GPU is busy for {busy:.2f} s, {100 * busy / plain:.0f} % of the batch")
    print(found.table(sort_by="self_cpu_time_total", row_limit=15, max_name_column_width=40), flush=True)


def prepare_trees(parser: Parser, held: Treebank) -> Any:
    """The trees that the parser is trained on."""
    from lols.tasks.parsing.treebank import prepare

    return prepare(*held.trees, held.corpus.offsets, parser.roots)


def first(corpus: Corpus, count: int) -> Corpus:
    """The first sentences of a corpus."""
    return corpus.select(np.arange(min(count, corpus.offsets.size - 1)))


def first_trees(trees: Any, corpus: Corpus, count: int) -> Any:
    """Their trees."""
    end = int(corpus.offsets[min(count, corpus.offsets.size - 1)])
    return type(trees)(*(column[:end] for column in trees))


def cut(data: Treebank, count: int) -> Treebank:
    """The first sentences of a treebank."""
    corpus = first(data.corpus, count)
    return replace(data, corpus=corpus, heads=data.heads[: corpus.tokens], numbers=data.numbers[: corpus.tokens])


def read(folder: Path, sentences: int | None) -> dict[str, Treebank]:
    """The three parts of EWT."""
    train, dev, _ = read_treebanks(
        [str(folder / "ewt-train.conllu.gz")], str(folder / "ewt-dev.conllu.gz"), ParserColumns()
    )
    test, _, _ = read_treebanks([str(folder / "ewt-test.conllu.gz")], None, train.columns)
    assert dev is not None
    parts = {"train": train, "dev": dev, "test": test}
    return parts if sentences is None else {name: cut(part, sentences) for name, part in parts.items()}


def without_tags(data: dict[str, Treebank]) -> dict[str, Treebank]:
    """The same treebank with words alone."""
    alone = {}
    for name, part in data.items():
        corpus = part.corpus._replace(columns={"word": part.corpus.columns["word"]})
        alone[name] = replace(part, corpus=corpus)
    return alone


def table4(folder: Path, chosen: Any, options: dict[str, Any]) -> None:
    """Train on the WSJ sample with all strategies, and print UAS on the test part."""
    train, test = (read_treebanks([str(folder / f"wsj-{part}.conll.gz")], None, ParserColumns())[0] for part in PARTS)
    if chosen.quick:
        train, test = cut(train, 300), cut(test, 100)
    for teacher in chosen.teachers or TEACHERS:
        for roll_in in ("learned", "reference"):
            for roll_out in ("learned", "mixture", "reference"):
                found = []
                for seed in range(chosen.seeds):
                    strategy = {"reference": teacher, "roll_in": roll_in, "roll_out": roll_out, "seed": seed}
                    parser = Parser(policy="neural", device=chosen.device, progress=False, **strategy, **options)
                    parser.fit_columns(train.corpus, *train.trees)
                    found.append(100 * parser.evaluate_columns(test.corpus, *test.trees).uas)
                print(f"{teacher:>10}, {roll_in:>9} / {roll_out:<9}: UAS {statistics.mean(found):.2f}", flush=True)


def pipeline(data: dict[str, Treebank], chosen: Any, options: dict[str, Any]) -> None:
    """Train taggers and a parser on their tags, and print accuracy, UAS and LAS on the test part."""
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        same = {name: options[name] for name in ("width", "layers", "dropout") if name in options}
        same |= {"policy": "neural", "device": chosen.device}
        tagger = Tagger(**same, roll_out="reference", passes=max(1, options["passes"] // 2))
        own = {name: value for name, value in options.items() if name != "threads"}
        parser = Parser(policy="neural", device=chosen.device, **own)
        parts = {"tags": chosen.tags.split(","), "folds": chosen.folds, "tagger": tagger, "parser": parser}
        made = Pipeline(**parts, seed=seed, threads=options.get("threads"), progress=False)
        made.fit_columns(data["train"].corpus, *data["train"].trees, say=partial(print, flush=True))
        for part in ("dev", "test"):
            found = made.evaluate_columns(data[part].corpus, *data[part].trees)
            tags = ", ".join(f"{name} {100 * share:.2f}" for name, share in found.tags.items())
            scores = f"UAS {100 * found.trees.uas:.2f} LAS {100 * found.trees.las:.2f}"
            print(f"pipeline, seed {seed}, {part}: {tags}; {scores}", flush=True)


def main() -> None:
    """Train and print."""
    arguments = argparse.ArgumentParser(description="The neural parser on EWT under three teachers.")
    arguments.add_argument("teachers", nargs="*", metavar="TEACHER", help=f"{', '.join(TEACHERS)}; all by default")
    arguments.add_argument("--passes", type=int, default=20)
    arguments.add_argument("--seeds", type=int, default=1, help="how many runs for each teacher")
    arguments.add_argument("--device", default="auto", help="auto, cpu or cuda")
    arguments.add_argument("--minutes", type=float, default=600.0, help="no pass begins after so long, over all runs")
    arguments.add_argument("--sentences", type=int, help="only the first sentences of each part")
    arguments.add_argument("--option", action="append", default=[], help="of Parser, such as width=300 or steps=8")
    arguments.add_argument("--words", action="store_true", help="without tags")
    arguments.add_argument("--pipeline", action="store_true", help="with tags of its own")
    arguments.add_argument("--folds", type=int, default=5, help="of the pipeline's training tags (default 5)")
    arguments.add_argument(
        "--tags", default="upos,xpos,feats", help="that the pipeline predicts (default upos,xpos,feats)"
    )
    arguments.add_argument("--table4", action="store_true", help="all strategies, on the WSJ sample")
    arguments.add_argument("--first", type=int, default=0, help="the first seed")
    arguments.add_argument("--beam", type=int, default=1, help="parse the test part with a beam, too")
    arguments.add_argument("--speed", action="store_true", help="what the speed depends on, and where it goes")
    arguments.add_argument("--pageable", action="store_true", help="copy to the GPU from memory that is not pinned")
    arguments.add_argument("--in-turn", action="store_true", help="search and learn in turn on a GPU, too")
    arguments.add_argument("--quick", action="store_true", help="300 sentences and a small network")
    chosen = arguments.parse_args()
    folder, until = data_directory(), time.time() + 60 * chosen.minutes
    if folder is None:
        raise SystemExit("the data sets are not here: set LOLS_DATA to the folder that holds them")
    options: dict[str, Any] = {"passes": chosen.passes} | (SPEED if chosen.speed else {})
    options |= QUICK if chosen.quick else {}
    if chosen.in_turn:
        neural.AHEAD = ()
    if chosen.pageable:
        batches.MOST_PAGEABLE = 1 << 62
    for text in chosen.option:
        name, _, value = text.partition("=")
        options[name] = json.loads(value) if value[:1].isdigit() else value
    if chosen.table4:
        return table4(folder, chosen, options)
    data = read(folder, 300 if chosen.quick else chosen.sentences)
    data = without_tags(data) if chosen.words else data
    where = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{torch.get_num_threads()} CPU threads"
    print(f"PyTorch {torch.__version__}, {where}; {data['train'].summary()}", flush=True)
    if chosen.speed:
        conditions()
    if chosen.pipeline:
        return pipeline(data, chosen, options)
    results: list[dict[str, Any]] = []
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        for teacher in chosen.teachers or TEACHERS:
            if time.time() > until:
                break
            print(f"{teacher} teacher, seed {seed}, {options}", flush=True)
            parser = Parser(policy="neural", device=chosen.device, reference=teacher, seed=seed, **options)
            found = Run(parser, data, until, chosen.beam, chosen.speed).train()
            test = found["test"]
            print(
                f"{teacher} teacher, seed {seed}: test UAS {100 * test['uas']:.2f} LAS {100 * test['las']:.2f}; "
                f"training {found['tokens_per_second']:,.0f} tokens/s, parsing {test['tokens_per_second']:,.0f}",
                flush=True,
            )
            results.append({"teacher": teacher, "seed": seed, "options": options, **found})
            Path("reports").mkdir(exist_ok=True)
            Path("reports/neural.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
