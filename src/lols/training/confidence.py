"""What a model says of its own steps: the costs and probabilities of all actions, and which steps were right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from lols.contract.examples import Examples
from lols.contract.frames import as_objects
from lols.contract.space import Reference
from lols.contract.task import as_teacher
from lols.training.algorithms import LOLS
from lols.training.calibration import Judged, most_judged
from lols.training.deviation_costs import DeviationCosts, exact_plan

BY_REFERENCE = LOLS.exactly("learned", "reference")


class StepScores(NamedTuple):
    """All actions of all steps of one example, as the policy sees them.

    Attributes
    ----------
    taken
        The action of each step.
    costs
        The predicted costs, `[step, action]`; infinite for actions that are not legal.
    probabilities
        The probability of each action to be the best; None if the model is not calibrated.

    """

    taken: np.ndarray  # [step]
    costs: np.ndarray  # [step, action]: predicted, infinite for actions that are not legal
    probabilities: np.ndarray | None  # [step, action]: that an action is the best; None if the model is not calibrated


def _unlabelled(model: Any, objects: Iterable[Any] | Examples) -> Examples | None:
    """Objects in columns, without their truth; None if there are none."""
    given = objects if isinstance(objects, Examples) else list(as_objects(objects))
    if not len(given):
        return None
    return given if isinstance(given, Examples) else Examples(model.space, given, truth=False)


def confident_outputs(model: Any, objects: Iterable[Any] | Examples) -> tuple[list[Any], list[np.ndarray]]:
    """The greedy outputs, and how sure each of their steps is."""
    model.check_policy_decides("confidence")
    calibration, examples = model.calibrated(), _unlabelled(model, objects)
    if examples is None:
        return [], []
    found = model.run(examples, temperature=calibration.temperature)
    sure, count = calibration.confidence(found.shares), range(len(examples))
    steps = [slice(found.first_step[i], found.first_step[i] + found.actions(i).size) for i in count]
    return [found.output(i) for i in count], [sure[each] for each in steps]


def step_scores(model: Any, objects: Iterable[Any] | Examples) -> list[StepScores]:
    """All actions of all steps of each object."""
    examples = _unlabelled(model, objects)
    if examples is None:
        return []
    run, made = model.run(examples, scores=True), []
    for i in range(len(examples)):
        taken, costs = run.actions(i).astype(np.int64), run.costs(i).copy()
        fitted = None if model.calibration is None else model.calibration.probabilities(costs, taken)
        made.append(StepScores(taken, costs, fitted))
    return made


def judged_steps(model: Any, examples: Examples, reference: Reference | None = None) -> Judged:
    """The steps of the policy on examples, and whether they cost least if the reference completes the result."""
    model.check_policy_decides("confidence")
    most, steps = most_judged(examples.most_actions), 0
    costs, taken, right = [], [], []
    reference = as_teacher(reference, model.space)
    plan = exact_plan(model.space, reference, BY_REFERENCE, 0)
    plan = plan._replace(seed=model.plan.seed, random_ties=model.plan.random_ties)
    with model.driver(examples, reference) as driver:
        run = driver.predict(model.policy, model.plan, scores=True)
        for part in DeviationCosts(driver, model.policy, plan).parts(np.arange(len(examples))):
            for example, first, filled in zip(part.batch.lessons.example, part.first, part.filled, strict=True):
                actions = run.actions(example).astype(np.int64)[:filled]
                found = part.costs[first : first + actions.size]
                costs.append(run.costs(example)[:filled])
                taken.append(actions)
                right.append(found[np.arange(actions.size), actions] <= found.min(axis=1, initial=np.inf))
                steps += actions.size
            if steps >= most:
                break
    return Judged(np.concatenate(costs), np.concatenate(taken), np.concatenate(right))
