"""Which policy should roll in, and which should roll out? Two generated tasks, three teachers, all strategies.

*topics*: every word of a text hints at a topic, often wrongly; topics last for a while. The topic before is the best
hint, so a learner that only ever saw the true one trusts it too much.
*trees*: arc-hybrid dependency parsing (Kuhlmann et al. 2011) of sentences from a small grammar. A wrong arc makes
others impossible, and the loss is known at the end only, so it matters who completes a deviation.

Run it with `make demo`; the plots go to reports/demo.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import trees
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from rich.console import Console
from rich.table import Table

import lols
from lols.worlds import tagging_references, tagging_space

PASSES = 5
TEACHERS = ("optimal", "suboptimal", "bad")

# --- topics: the built-in tagging space on texts in which the topic before is the best hint --------------------------


def topic_texts(count: int, seed: int, *, topics: int = 6, stay: float = 0.9, hint: float = 0.6) -> list[Any]:
    """Texts of 10 to 30 words out of ten words for each topic; a topic stays from word to word with a high chance."""
    rng, texts = np.random.default_rng(seed), []
    for _ in range(count):
        words, tags, topic = [], [], int(rng.integers(topics))
        for _ in range(int(rng.integers(10, 31))):
            if rng.random() > stay:
                topic = int(rng.integers(topics))
            hinted = topic if rng.random() < hint else int(rng.integers(topics))
            tags.append(topic)
            words.append(10 * hinted + int(rng.integers(10)))
        texts.append({"words": words, "tags": tags})
    return texts


# --- training --------------------------------------------------------------------------------------------------------

AGGREVATE, LOLS, AUTO = "learned / reference (AggreVaTe)", "learned / mixture (LOLS)", "LOLS, β = auto"
SIX = {
    "reference / reference": ("reference", "reference"),
    "reference / mixture": ("reference", "mixture"),
    "reference / learned": ("reference", "learned"),
    AGGREVATE: ("learned", "reference"),
    LOLS: ("learned", "mixture"),
    "learned / learned": ("learned", "learned"),
}
STRATEGIES: dict[str, dict[str, Any]] = {
    **{name: {"roll_in": into, "roll_out": out} for name, (into, out) in SIX.items()},
    "Searn": {"algorithm": "searn"},
    "DAgger": {"algorithm": "dagger"},
    AUTO: {"beta": "auto"},
    "LOLS, expected costs": {"mix": "expected"},
    "LOLS, a coin per roll-out": {"mix": "rollout"},
}


@dataclass
class Task:
    """A space with its teachers, a training set for each seed, and a test set, in columns."""

    name: str
    space: lols.SearchSpace
    teachers: dict[str, lols.Reference]
    train: list[lols.Examples]
    test: lols.Examples


@dataclass
class Result:
    """One strategy under one teacher: [seed, pass] of test errors in percent and of β, and how long it took."""

    errors: np.ndarray
    betas: np.ndarray
    seconds: float
    tokens_per_second: float

    @property
    def mean(self) -> float:
        return float(self.errors[:, -1].mean())


Results = dict[tuple[str, str, str], Result]
OwnErrors = dict[tuple[str, str], float]


def make_tasks(seeds: int) -> list[Task]:
    """Both tasks with generated data."""
    made = []
    for name, space, teachers, make in (
        ("topics", tagging_space(labels=6), tagging_references(), topic_texts),
        ("trees", trees.SPACE, trees.TEACHERS, trees.sentences),
    ):
        test, *train = (lols.Examples(space, make(400, seed)) for seed in range(seeds + 1))
        made.append(Task(name, space, teachers, train, test))
    return made


def tokens(examples: lols.Examples) -> int:
    return int(examples.x.words.values.size)


def error(losses: np.ndarray, examples: lols.Examples) -> float:
    return 100.0 * float(losses.sum()) / tokens(examples)


def train(task: Task, teacher: str, options: dict[str, Any]) -> Result:
    """Train one strategy on each training set; the error on the test data after every pass."""
    shape = len(task.train), PASSES
    errors, betas, seconds = np.zeros(shape), np.zeros(shape), 0.0
    for seed, data in enumerate(task.train):

        def after_pass(number: int, model: lols.Model, seed: int = seed) -> None:
            nonlocal seconds
            began = time.perf_counter()
            errors[seed, number] = error(model.losses(task.test), task.test)
            betas[seed, number] = model.report["beta"]
            seconds -= time.perf_counter() - began

        model = lols.train(
            task.space, data, task.teachers[teacher], passes=PASSES, seed=seed, after_pass=after_pass, progress=False,
            **options,
        )  # fmt: skip
        seconds += model.report["seconds_total"] - model.report["seconds_compiling"]
    return Result(errors, betas, seconds / len(task.train), PASSES * sum(map(tokens, task.train)) / seconds)


def train_all(tasks: list[Task], out: Console) -> tuple[Results, OwnErrors]:
    """All strategies under all teachers, and the teachers' own errors on the test data in percent."""
    results: Results = {}
    own: OwnErrors = {}
    for task in tasks:
        for teacher, reference in task.teachers.items():
            out.print(f"{task.name}, {teacher} teacher ... ", end="")
            # a first small model, so that compilation is over when the others are timed
            began = time.perf_counter()
            model = lols.train(task.space, task.test, reference, passes=1, sample_steps=1, progress=False)
            own[task.name, teacher] = error(model.reference_losses(task.test, reference), task.test)
            model.losses(task.test)
            ready = time.perf_counter()
            for name, options in STRATEGIES.items():
                results[task.name, teacher, name] = train(task, teacher, options)
            spent = f"{len(STRATEGIES) * len(task.train)} models in {time.perf_counter() - ready:.0f} s"
            out.print(spent + (f", after {ready - began:.0f} s of compilation" if ready - began > 2.0 else ""))
    return results, own


# --- tables ----------------------------------------------------------------------------------------------------------


def show_table(out: Console, teacher: str, tasks: list[Task], results: Results, own: OwnErrors) -> None:
    """Test errors of all strategies under one teacher."""
    table = Table(title=f"[bold]{teacher} teacher[/bold]: test error in %", title_justify="left")
    table.add_column("roll in / roll out")
    for task in tasks:
        table.add_column(task.name, justify="right")
        table.add_column("seconds", justify="right")
        table.add_column("tokens/s", justify="right")
    table.add_row(
        "[dim]the teacher itself[/dim]", *(c for t in tasks for c in (f"{own[t.name, teacher]:.1f}      ", "", ""))
    )
    table.add_section()
    best = {t.name: min(results[t.name, teacher, name].mean for name in STRATEGIES) for t in tasks}
    for name in STRATEGIES:
        cells = []
        for task in tasks:
            found = results[task.name, teacher, name]
            error = f"{found.mean:.1f} ± {found.errors[:, -1].std():.1f}"
            cells += [f"[bold]{error}[/bold]" if found.mean == best[task.name] else error]
            cells += [f"{found.seconds:.2f}", f"{found.tokens_per_second:,.0f}"]
        table.add_row(
            name, *cells, style="black on bright_green" if name == LOLS else None, end_section=name == list(SIX)[-1]
        )
    out.print(table)


def show_conclusions(out: Console, results: Results, own: OwnErrors) -> None:
    """What the paper says, in the numbers of this run."""

    def mean(task: str, teacher: str, name: str) -> str:
        return f"{results[task, teacher, name].mean:.1f} %"

    def spread(task: str, name: str) -> str:
        errors = [results[task, teacher, name].mean for teacher in TEACHERS]
        return f"{min(errors):.1f} to {max(errors):.1f} %"

    shares = {"half": LOLS, "auto": AUTO, "none": "learned / learned"}
    for claim, numbers in {
        "Rolling in with the reference can be bad, even if it is optimal": (
            f"topics: {mean('topics', 'optimal', 'reference / mixture')} instead of {mean('topics', 'optimal', LOLS)}"
        ),
        "Rolling out with a bad reference is bad": (
            f"trees: {mean('trees', 'bad', AGGREVATE)} instead of {mean('trees', 'bad', LOLS)}"
        ),
        "LOLS is robust, from the optimal to the bad teacher": (
            f"trees: LOLS {spread('trees', LOLS)}, AggreVaTe {spread('trees', AGGREVATE)}, "
            f"Searn {spread('trees', 'Searn')}"
        ),
        "LOLS can be better than its teacher": (
            f"trees: {mean('trees', 'suboptimal', LOLS)}, taught by one with {own['trees', 'suboptimal']:.1f} %"
        ),
        "What the share of a bad teacher in the roll-outs costs": (
            "trees: " + ", ".join(f"{share} {mean('trees', 'bad', name)}" for share, name in shares.items())
        ),
        "Where the loss is a sum over words, any fixed policy will do for the roll-outs": (
            f"topics: AggreVaTe {spread('topics', AGGREVATE)} under all three teachers"
        ),
    }.items():
        out.print(f"{claim}:\n    {numbers}")


# --- plots -----------------------------------------------------------------------------------------------------------

# The palette of Okabe & Ito (2008), which people with any colour vision can tell apart; markers help, too.
LINES = {
    "reference / reference": ("#D55E00", "s"),
    AGGREVATE: ("#E69F00", "^"),
    LOLS: ("#009E73", "o"),
    "learned / learned": ("#0072B2", "v"),
    AUTO: ("#CC79A7", "D"),
}
TEACHER_LINES = {"optimal": ("#009E73", "o"), "suboptimal": ("#E69F00", "^"), "bad": ("#0072B2", "s")}


def plot_strategies(path: Path, tasks: list[Task], results: Results, own: OwnErrors) -> None:
    """Heat maps of the six strategies, one for each task and teacher."""
    policies = ("reference", "mixture", "learned")
    figure = Figure(figsize=(10.5, 6.2), layout="constrained")
    axes = figure.subplots(len(tasks), 3)
    for row, task in zip(axes, tasks, strict=True):
        means = {t: np.reshape([results[task.name, t, n].mean for n in SIX], (2, 3)) for t in TEACHERS}
        low, high = (f([f(m) for m in means.values()]) for f in (np.min, np.max))
        for at, (axis, teacher) in enumerate(zip(row, TEACHERS, strict=True)):
            image = axis.imshow(means[teacher], cmap="cividis_r", vmin=low, vmax=high, aspect="auto")
            for (i, j), value in np.ndenumerate(means[teacher]):
                dark = value > (low + high) / 2
                axis.text(j, i, f"{value:.1f}", ha="center", va="center", size=13, color="white" if dark else "black")
            axis.add_patch(Rectangle((0.52, 0.52), 0.96, 0.96, fill=False, edgecolor="#D55E00", linewidth=3))
            axis.set_title(f"{task.name}, {teacher} teacher\n(its own error: {own[task.name, teacher]:.1f} %)", size=10)
            axis.set_xticks(range(3), policies)
            axis.set_yticks(range(2), ("reference", "learned") if at == 0 else ("", ""))
            axis.set_xlabel("roll out" if task is tasks[-1] else "")
            axis.set_ylabel("roll in" if at == 0 else "")
        figure.colorbar(image, ax=row, label="test error in %", shrink=0.9)
    figure.suptitle("Who should roll in, and who should roll out? (LOLS is framed)")
    figure.savefig(path, dpi=130)


def plot_curves(path: Path, tasks: list[Task], results: Results, own: OwnErrors) -> None:
    """Test error after each pass."""
    figure = Figure(figsize=(10.5, 6.4), layout="constrained")
    axes = figure.subplots(len(tasks), 3, sharex=True, sharey="row")
    passes = np.arange(1, PASSES + 1)
    for row, task in zip(axes, tasks, strict=True):
        top = 1.08 * max(results[task.name, t, n].errors.mean(axis=0).max() for t in TEACHERS for n in LINES)
        for axis, teacher in zip(row, TEACHERS, strict=True):
            for name, (colour, marker) in LINES.items():
                errors = results[task.name, teacher, name].errors
                axis.plot(passes, errors.mean(axis=0), color=colour, marker=marker, markersize=5, label=name)
                axis.fill_between(passes, errors.min(axis=0), errors.max(axis=0), color=colour, alpha=0.15, linewidth=0)
            if 0.0 < own[task.name, teacher] < top:
                axis.axhline(own[task.name, teacher], color="black", linestyle=":", label="the teacher itself")
            axis.set_title(f"{task.name}, {teacher} teacher", size=10)
            axis.set_ylim(0.0, top)
            axis.set_xticks(passes)
            axis.grid(alpha=0.25)
        row[0].set_ylabel("test error in %")
    for axis in axes[-1]:
        axis.set_xlabel("pass")
    labels = {
        label: handle for axis in axes.flat for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=130)


def plot_beta(path: Path, tasks: list[Task], results: Results) -> None:
    """β = auto after each pass."""
    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    axes = figure.subplots(1, len(tasks), sharey=True)
    for axis, task in zip(axes, tasks, strict=True):
        for teacher, (colour, marker) in TEACHER_LINES.items():
            betas = results[task.name, teacher, AUTO].betas
            trace = np.concatenate([[0.5], betas.mean(axis=0)])
            axis.plot(range(PASSES + 1), trace, color=colour, marker=marker, markersize=5, label=f"{teacher} teacher")
        axis.set_title(task.name, size=10)
        axis.set_xlabel("pass")
        axis.set_xticks(range(PASSES + 1))
        axis.set_ylim(-0.03, 1.03)
        axis.grid(alpha=0.25)
    axes[0].set_ylabel("β: share of the teacher in roll-outs")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=130)


def main() -> None:
    """Train, show, plot."""
    parser = argparse.ArgumentParser(description="Compare roll-in and roll-out strategies under three teachers.")
    parser.add_argument("--seeds", type=int, default=5, help="models for each strategy and teacher (default 5)")
    parser.add_argument("--out", type=Path, default=Path("reports/demo"), help="folder for the plots")
    chosen = parser.parse_args()
    if chosen.seeds < 1:
        parser.error("--seeds must be at least 1")
    began = time.perf_counter()
    os.environ.setdefault("LOLS_ANNOUNCE", "0")  # compilation is announced here
    out = Console(highlight=False, width=max(Console().width, 110))
    out.print("Two tasks, three teachers, all strategies. The first run compiles, which takes about a minute.\n")
    tasks = make_tasks(chosen.seeds)
    results, own = train_all(tasks, out)
    for teacher in TEACHERS:
        out.print()
        show_table(out, teacher, tasks, results, own)
    out.print(
        "\nMean and standard deviation over the seeds; seconds for each model. The best is bold, LOLS is green.\n"
        "DAgger imitates: it can be as good as its teacher, and as bad.\n"
    )
    show_conclusions(out, results, own)
    out.print(f"\nWhat the green line does:\n\n{lols.explain('lols')}\n")
    chosen.out.mkdir(parents=True, exist_ok=True)
    plot_strategies(chosen.out / "strategies.png", tasks, results, own)
    plot_curves(chosen.out / "learning-curves.png", tasks, results, own)
    plot_beta(chosen.out / "beta-auto.png", tasks, results)
    out.print(
        "Plots: " + ", ".join(str(chosen.out / f"{n}.png") for n in ("strategies", "learning-curves", "beta-auto"))
    )
    out.print(f"All of it took {time.perf_counter() - began:.0f} s.")


if __name__ == "__main__":
    main()
