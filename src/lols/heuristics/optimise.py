"""`lols.optimise`: learn to decide better than a heuristic, within a time budget, and say what came of it.

Several strategies are tried on a share of the instances; the best on instances that none of them saw is trained for
the rest of the time. What is reported comes from further instances, which chose nothing.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lols.contract.space import Reference, SearchSpace
from lols.contract.task import Task, as_teacher
from lols.contract.threads import Threads
from lols.contract.whole_numbers import check_seed, check_whole
from lols.errors import ConfigurationError, shown
from lols.heuristics.budget import Lines, TimeBudget
from lols.heuristics.instances import Instances
from lols.heuristics.problems import HeuristicProblem, problem_of
from lols.heuristics.report import OptimisationReport
from lols.heuristics.search import Earlier, StrategySearch
from lols.heuristics.strategies import STRATEGIES
from lols.plots.plans import side_by_side
from lols.programs.model import ProgramModel
from lols.programs.program import Program
from lols.training.model import Model
from lols.training.model_file import is_own


@dataclass
class Optimised:
    """A policy that was learned from a heuristic, and the report of how it compares with it.

    Parameters
    ----------
    model
        The model: it decides by the learned policy, or by the heuristic if no policy was better.
    reference
        The heuristic; None for a program, which names it itself.
    report
        What was tried, and the comparison on held-out instances. `print(report)` shows it.

    """

    model: Model | ProgramModel
    reference: Reference | None
    report: OptimisationReport

    def predict(
        self, objects: Iterable[Any], *, improve: Callable[[Any, Any], Any] | None = None, **search: Any
    ) -> list[Any]:
        """The output for each object, as `model.predict` gives it: the learned policy's, or the heuristic's.

        The options are those of `model.predict`: `best_of`, `starts`, `beam` (not for programs), `temperature` and
        `seed`. If the heuristic was kept, each output of a search is the one of less loss, the heuristic's or that of
        the search.

        Parameters
        ----------
        objects
            The objects of the user, or `Examples` in columns.
        improve
            A function of an instance and its output, such as a local search, that returns a better output.
        **search
            Options of `Model.predict`, such as `best_of`.

        """
        outputs: list[Any] = self.model.predict(objects, improve=improve, **search)
        return outputs

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file: `lols.load(path, task)` reads it, and predicts the same.

        Parameters
        ----------
        path
            Where to write; the file is whole or not there.

        """
        self.model.save(path)

    def picture(
        self, instance: Any, draw: Callable[[Any, Any, Any], None], path: str | os.PathLike[str], **search: Any
    ) -> None:
        """Draw one instance before and after, as PNG, SVG or PDF by the ending of the path.

        `draw(axes, instance, output)` draws a plan with matplotlib, once for the heuristic and once for `predict` with
        the options of `search`.

        Parameters
        ----------
        instance
            The instance to draw.
        draw
            Draws a plan: it is given matplotlib's axes, the instance and its output.
        path
            Where to write: a .png, .svg or .pdf.
        **search
            Options of `Model.predict`, such as `best_of`.

        """
        model, given = self.model, () if self.reference is None else (self.reference,)
        outputs = [model.reference_outputs([instance], *given)[0], model.predict([instance], **search)[0]]
        losses = [model.reference_losses([instance], *given)[0], model.losses([instance], **search)[0]]
        names = "heuristic", self._drawn(search.get("best_of", 1))
        titles = [f"{name}: {loss:.4g}" for name, loss in zip(names, losses, strict=True)]
        side_by_side(draw, [(instance, output) for output in outputs], titles, path)

    def _drawn(self, best_of: int) -> str:
        """What a picture shows beside the heuristic."""
        if not self.model.kept_reference:
            return "learned" if best_of == 1 else f"learned, best of {best_of}"
        return "heuristic, which was kept" if best_of == 1 else f"heuristic, or best of {best_of} if better"

    def __str__(self) -> str:
        return str(self.report)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: a heuristic that is the task's own is found there again."""
        reference = self.reference
        if reference is not None and isinstance(self.model, Model):
            reference = None if is_own(reference, self.model.space) else reference.plain
        return {"model": self.model, "reference": reference, "report": self.report}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if isinstance(self.model, Model):
            self.reference = as_teacher(self.reference, self.model.space)


__all__ = ["Optimised", "optimise"]


def optimise(
    task: SearchSpace | Task | type[Task] | Program,
    instances: Iterable[Any] | Callable[[np.random.Generator], Any],
    reference: Reference | None = None,
    *,
    minutes: float = 2.0,
    best_of: int = 64,
    sample_steps: int | None = None,
    seed: int = 0,
    threads: Threads = None,
    progress: bool | None = None,
    resume: Optimised | Model | ProgramModel | None = None,
) -> Optimised:
    """Learn a policy that decides better than a heuristic.

    The task's `reference` is the heuristic, and its `loss` what is to be small; a program names both itself. Strategies
    and margins are compared on held-out instances within the time budget. If the best policy is not better than the
    heuristic on the instances of the report, predictions remain the heuristic's.

    Ctrl-C ends the learning early: the best policy so far is returned with its report, and `report.interrupted` is
    True.

    Parameters
    ----------
    task
        A `Task`, `SearchSpace` or `Program` whose loss can be computed without labels.
    instances
        A list of instances, or a function `draw(rng)` that returns a random one. With a function, training sees as many
        instances as there is time for. Of a list, a fifth chooses the strategy and a fifth is for the report.
    reference
        The heuristic; by default that of the task. A program names its own.
    minutes
        The time budget; compiling does not count. Training ends with the pass that exceeds it.
    best_of
        How many samples of the policy the last line of the report compares with the heuristic.
    sample_steps
        Deviate at this many random states of an instance; by default at all of them, or as many as there is time for.
        With instances of hundreds of decisions, training then gets through many more of them.
    seed
        Of the instances that are drawn, and of training.
    threads
        Threads of training and prediction; by default all cores, at most 6. They do not change a policy, but with more
        of them the time suffices for more training. Programs run in one thread.
    progress
        Whether to print what is tried, and how far it is; by default on a terminal only.
    resume
        What an earlier call returned, or its model: the strategy that it chose is trained for the whole time, from the
        weights of its policy. Give the same instances and seed, so that those of the report remain unseen.

    """
    if not (isinstance(minutes, int | float) and 0.0 < minutes < math.inf):
        raise ConfigurationError(f"minutes is {minutes!r}; it must be a positive number")
    check_whole("best_of", best_of)
    check_seed(seed)
    if seed < 0:
        raise ConfigurationError(f"seed is {seed}; it must be at least 0")
    if sample_steps is not None:
        check_whole("sample_steps", sample_steps)
    budget = TimeBudget(60.0 * minutes)
    problem = problem_of(task, reference, threads)
    earlier = None if resume is None else _earlier(problem, resume, seed)
    search = StrategySearch(
        problem,
        Instances(problem, instances, seed),
        budget,
        Lines(progress, budget),
        seed,
        best_of,
        sample_steps,
        earlier,
    )
    model, report = search.run()
    return Optimised(model, problem.reference, report)


def _earlier(problem: HeuristicProblem, resume: Any, seed: int) -> Earlier:
    """What is gone on from."""
    model = resume.model if isinstance(resume, Optimised) else resume
    problem.check_start(model)
    facts = model.about.get("optimised")
    if not isinstance(facts, Mapping):
        raise ConfigurationError("resume is a model that lols.optimise has not made: give one that it has made")
    if facts.get("seed") != seed:
        raise ConfigurationError(
            f"resume began with seed {shown(facts.get('seed'))}: give the same, so that it has not learned from "
            "instances of the report"
        )
    known = {strategy.name: strategy for strategy in STRATEGIES}
    try:
        seconds, instances = float(facts["seconds"]), int(facts["instances"])
    except (KeyError, TypeError, ValueError, OverflowError):
        seconds, instances = math.nan, -1
    if not (0.0 <= seconds < math.inf and 0 <= instances < 1 << 40):
        raise ConfigurationError("resume does not say what was spent on it: give a model that lols.optimise has made")
    return Earlier(model, known.get(str(facts.get("strategy"))), seconds, instances)
