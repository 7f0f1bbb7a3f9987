"""What a model says of its own steps: the costs and probabilities of all actions, and which steps were right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lols.contract.examples import Examples
from lols.contract.frames import as_objects
from lols.contract.space import Reference
from lols.contract.task import as_teacher
from lols.engine.structures import ROLLS, following
from lols.training.calibration import Judged, most_judged

if TYPE_CHECKING:
    from lols.training.model import Model

TOGETHER = 256  # examples whose steps are judged at a time


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


def _unlabelled(model: Model, objects: Iterable[Any] | Examples) -> Examples | None:
    """Objects in columns, without their truth; None if there are none."""
    given = objects if isinstance(objects, Examples) else list(as_objects(objects))
    if not len(given):
        return None
    return given if isinstance(given, Examples) else Examples(model.space, given, truth=False)


def confident_outputs(model: Model, objects: Iterable[Any] | Examples) -> tuple[list[Any], list[np.ndarray]]:
    """The greedy outputs, and how sure each of their steps is."""
    model.check_policy_decides("confidence")
    calibration, examples = model.calibrated(), _unlabelled(model, objects)
    if examples is None:
        return [], []
    found = model.run(examples, temperature=calibration.temperature)
    sure, count = calibration.confidence(found.shares), range(len(examples))
    steps = [slice(found.first_step[i], found.first_step[i] + found.actions(i).size) for i in count]
    return [found.output(i) for i in count], [sure[each] for each in steps]


def step_scores(model: Model, objects: Iterable[Any] | Examples) -> list[StepScores]:
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


def judged_steps(model: Model, examples: Examples, reference: Reference | None = None) -> Judged:
    """The steps of the policy on examples, and whether they cost least if the reference completes the result."""
    model.check_policy_decides("confidence")
    reference = as_teacher(reference, model.space)
    plan = following(model.plan.seed, model.plan.random_ties)._replace(
        roll_out=ROLLS["reference"],
        exact=True,
        random_teacher=reference.random,
        set_valued=reference.free is not None or reference.action is None,
        closed_form=reference.costs is not None,
    )
    most, steps = most_judged(examples.most_actions), 0
    costs, taken, right = [], [], []
    with model.driver(examples, reference) as driver:
        run = driver.predict(model.policy, model.plan, scores=True)
        for low in range(0, len(examples), TOGETHER):
            some = np.arange(low, min(low + TOGETHER, len(examples)))
            ones = np.ones(some.size)
            lessons = driver.make_lessons(some, some, model.policy, plan, ones, ones).lessons
            for k, i in enumerate(some.tolist()):
                actions = run.actions(i).astype(np.int64)
                found = lessons.slots.costs[lessons.first[k] : lessons.first[k] + actions.size]
                costs.append(run.costs(i))
                taken.append(actions)
                right.append(found[np.arange(actions.size), actions] <= found.min(axis=1, initial=np.inf))
                steps += actions.size
            if steps >= most:
                break
    return Judged(np.concatenate(costs), np.concatenate(taken), np.concatenate(right))
