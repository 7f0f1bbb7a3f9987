"""How one example of a file is decided: what the reports of all tasks share, and what the engine is asked for them.

The costs are those of the engine that trains: roll-in by the model, one-step deviations, roll-outs, losses, as in
Figure 2 of the paper.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from lols.contract.examples import Examples
from lols.contract.space import Reference
from lols.engine.structures import COMPARE
from lols.errors import ConfigurationError
from lols.io.whole_file import write_whole
from lols.kernels.hashing import mix, unit
from lols.tasks.inspect import stored_algorithm
from lols.training.algorithms import LOLS, ROLL_OUTS, Algorithm, schedules
from lols.training.model import Model
from lols.training.trainer import Trainer

if TYPE_CHECKING:
    from rich.console import Console

DRAWN = "Searn draws a policy at every decision, so that no deviation has a cost of its own."
BETA = 0.5  # where training adapted β, and the file does not say to what


# --- reports ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExampleReport:
    """An explanation of one example of a file; subclasses say what is in it."""

    model: str
    file: str
    one: str  # what an example is called
    number: int
    count: int | None  # of examples in the file, if that is known

    @property
    def heading(self) -> str:
        """Which example it is."""
        of = "" if self.count is None else f" of {self.count:,}"
        return f"{self.one.capitalize()} {self.number:,}{of} in {self.file}"

    def values(self) -> dict[str, Any]:
        """The explanation as plain values."""
        raise NotImplementedError

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        counts = {self.one: self.number} | ({} if self.count is None else {f"{self.one}s": self.count})
        return {"file": self.file, **counts, **self.values()}

    def show(self, console: Console) -> None:
        """Print it."""
        raise NotImplementedError


@dataclass(frozen=True)
class SentenceReport(ExampleReport):
    """An explanation of a sentence, which can also be drawn as a page."""

    found: Any
    asked: Any

    def page(self) -> str:
        """The page."""
        raise NotImplementedError

    def values(self) -> dict[str, Any]:
        """The explanation as plain values."""
        values: dict[str, Any] = self.found.as_dict(self.asked.top)
        return values

    def written(self) -> Self:
        """The same, with its page written if one was asked for."""
        if self.asked.html is not None:
            write_whole(self.asked.html, self.page().encode())
        return self

    def _repr_html_(self) -> str:
        """The page as a frame in a notebook: its styles stay inside, and nothing in it is executed."""
        return f'<iframe sandbox srcdoc="{html.escape(self.page())}" style="width:100%;height:620px;border:0"></iframe>'


def roll_out_text(roll_out: str | None, beta: float | None, what: str) -> list[str]:
    """Who completes deviations, as a line, if anybody does."""
    who = {
        None: "",
        "learned": "by the learned policy",
        "reference": "by the reference",
        "none": f"not at all: a cost is what {what} adds to the loss by itself",
        "mixture": f"by the reference and by the learned policy, costs averaged (β = {beta or 0:g})",
    }
    return [f"Deviations are completed {who[roll_out]}."] if roll_out is not None else []


# --- costs ------------------------------------------------------------------------------------------------------------


def explained_roll_out(model: Model, roll_out: str | None, beta: Any) -> tuple[Algorithm, float]:
    """The algorithm with another roll-in and nothing left to chance, and the reference's share in a mixture."""
    stored = stored_algorithm(model.about) or LOLS
    chosen = roll_out or ("learned" if stored.restart else stored.roll_out)  # searn ends with its own policies
    if chosen not in ROLL_OUTS:
        raise ConfigurationError(f"roll_out is '{chosen}': choose one of {', '.join(ROLL_OUTS)}")
    if beta is not None and chosen != "mixture":
        raise ConfigurationError(f"beta has no effect: roll_out is '{chosen}', not 'mixture'")
    made = (stored if beta is None else replace(stored, beta=beta)).exactly("learned", chosen)
    total = max(int(model.about.get("passes") or 1) * int(model.about.get("examples") or 1), 1)
    timed = schedules(made)[0]
    return made, BETA if timed is None else float(timed(np.array([total - 1]), total)[0])


def draws_policies(model: Model) -> bool:
    """Whether one of several policies is drawn at every decision, as Searn does."""
    return model.decides.components > 1


class FollowedPath(NamedTuple):
    """The path that a model takes through one example, and what deviations from it cost, if that is known."""

    taken: np.ndarray
    predicted: np.ndarray  # [step, action]: the predicted costs, infinite where illegal
    costs: np.ndarray | None = None  # [step, action], relative to the best action of the step; infinite where illegal
    losses: np.ndarray | None = None  # of the whole example; None if nothing was rolled out
    loss: float | None = None
    roll_out: str | None = None  # who completed the deviations
    beta: float | None = None  # the reference's share, if it was a mixture

    def actions(self, step: int) -> Iterator[tuple[int, tuple[float, float | None, float | None, bool]]]:
        """The legal actions by predicted cost: number; predicted cost, loss, cost, and whether it was taken."""
        for a in np.argsort(self.predicted[step], kind="stable").tolist():
            if np.isfinite(self.predicted[step, a]):
                loss, cost = (None if v is None else float(v[step, a]) for v in (self.losses, self.costs))
                yield a, (float(self.predicted[step, a]), loss, cost, a == int(self.taken[step]))


def follow(
    estimator: Any,
    examples: Examples,
    labelled: Examples | None = None,
    *,
    roll_out: str | None = None,
    beta: Any = None,
    compiled: bool = True,
) -> FollowedPath:
    """Follow an estimator through one example; with the same, `labelled`, evaluate the deviations from its path.

    They have no cost of their own where one of several policies is drawn at every decision.
    """
    model = estimator._fitted
    run = model.run(examples, scores=True)
    path = FollowedPath(run.actions(0).astype(np.int64), run.costs(0))
    if labelled is None or draws_policies(model) or not path.taken.size:
        return path
    chosen, share = explained_roll_out(model, roll_out, beta)
    teacher, seed = estimator.task_.reference(estimator.reference), estimator.seed
    found = deviation_costs(model, teacher, labelled, path.taken, chosen, share, seed=seed, compiled=compiled)
    mixed = share if chosen.roll_out == "mixture" else None
    return FollowedPath(path.taken, path.predicted, *found, chosen.roll_out, mixed)


def deviation_costs(
    model: Model,
    reference: Reference,
    examples: Examples,
    taken: np.ndarray,
    chosen: Algorithm,
    beta: float,
    *,
    seed: int = 0,
    compiled: bool = True,
) -> tuple[np.ndarray, np.ndarray | None, float]:
    """Evaluate all deviations from the path that the model takes through one example: costs, losses, its own loss.

    The engine keeps costs relative to the best action. It does measure the whole loss at one step of an example, to
    compare teacher and learner; rounds are chosen such that each step is measured in one of them.
    """
    space, tricks = model.space, {"closed_form": False}  # so that every deviation is rolled out
    trainer = Trainer(space, reference, algorithm=chosen, seed=seed, compiled=compiled, tricks=tricks)
    plan = trainer.plan._replace(compare=chosen.roll_out != "none", slack=np.inf, bound=False)
    steps = taken.size
    share = np.full(steps, beta)
    with model.decides.driver(space, examples, reference, compiled=compiled) as driver:
        rounds = _measuring_rounds(plan.seed, steps)
        batch = driver.make_lessons(np.zeros(steps, np.int64), rounds, model.policy, plan, share, share)
    at = np.arange(steps)
    costs = batch.lessons.slots.costs[batch.lessons.first + at].astype(np.float64)
    final = float(batch.losses[0, 0])
    if chosen.roll_out == "none":
        return costs, None, final
    by_teacher, by_learner = batch.losses[:, 1], batch.losses[:, 2]
    weight = {"reference": 1.0, "learned": 0.0}.get(chosen.roll_out, beta)
    anchor = _spent(space, examples, taken) + weight * by_teacher + (1.0 - weight) * by_learner
    return costs, (anchor - costs[at, taken])[:, np.newaxis] + costs, final


def _measuring_rounds(seed: int, steps: int) -> np.ndarray:
    """For each step a round in which the engine compares teacher and learner there."""
    found: dict[int, int] = {}
    number = 0
    while len(found) < steps:
        found.setdefault(int(unit(mix(mix(seed, number), COMPARE)) * steps), number)
        number += 1
    return np.array([found[k] for k in range(steps)], np.int64)


def _spent(space: Any, examples: Examples, taken: np.ndarray) -> np.ndarray:
    """What has been added to the loss before each step; nothing where the loss is known at the end only."""
    spent = np.zeros(taken.size)
    if space.cost is not None:
        x, y = examples.example(0)
        state = np.zeros(int(examples.states[0]), np.int64)
        space.start(x, state)
        for k, action in enumerate(taken[:-1]):
            spent[k + 1] = spent[k] + space.cost(x, y, state, action)
            space.step(x, state, action)
    return spent
