"""Beam search with the learned policy: several paths at once, and the best end states of each example."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.contract.examples import Examples
from lols.contract.whole_numbers import check_whole
from lols.engine.beam_steps import (
    COST,
    REGRET,
    SURPRISE,
    Beam,
    BeamTurn,
    Found,
    advance_kernel,
    beam_kernel,
    beam_paths,
    search_beam,
)
from lols.engine.deciding import Deciding
from lols.engine.drivers.adapted import adapted
from lols.engine.drivers.fused import FusedDriver
from lols.engine.drivers.lock_step import LockStepDriver
from lols.engine.drivers.predictions import Predictions
from lols.engine.memory import state_type
from lols.engine.states import States
from lols.engine.structures import FrozenPolicy, Plan
from lols.errors import ConfigurationError, SpaceError

MOST_WIDE = 100_000
TOGETHER = 256  # examples whose beams a policy that scores batches searches at a time
SCORES = {"regret": REGRET, "cost": COST, "surprise": SURPRISE}


class Beams:
    """The best results of all examples, best first, as `beam_search` gives them.

    An example may have fewer results than were asked for, if there are fewer paths. Lower scores are better.
    """

    def __init__(self, examples: Examples, best: int, compiled: bool):
        self.examples, self.best = examples, best
        first, first_step = (np.concatenate([[0], np.cumsum(n)]) for n in (examples.states, examples.steps + 1))
        self.found = Found(
            counts=np.zeros(len(examples), np.int64),
            scores=np.zeros((len(examples), best)),
            states=np.zeros(int(first[-1]) * best, state_type(compiled)),
            first=first,
            taken=np.full(int(first_step[-1]) * best, -1, np.int32),
            first_step=first_step,
        )

    def __len__(self) -> int:
        return len(self.examples)

    def scores(self, index: int) -> np.ndarray:
        """The scores of one example's results; lower is better."""
        return self.found.scores[index, : self.found.counts[index]]

    def states(self, index: int) -> np.ndarray:
        """The end states of one example's results, one per row."""
        return self._rows(self.found.states, self.found.first, index)

    def actions(self, index: int) -> list[np.ndarray]:
        """The actions of one example's results."""
        rows = self._rows(self.found.taken, self.found.first_step, index)
        return [taken[: int(np.argmax(taken < 0))] for taken in rows]

    def outputs(self, index: int) -> list[tuple[Any, float]]:
        """The space's outputs for one example, with their scores."""
        pairs = zip(self.states(index), self.scores(index), strict=True)
        return [(self.examples.output(index, state), float(score)) for state, score in pairs]

    def _rows(self, values: np.ndarray, first: np.ndarray, index: int) -> np.ndarray:
        size, at = int(first[index + 1] - first[index]), int(first[index]) * self.best
        return values[at : at + size * self.best].reshape(self.best, size)[: self.found.counts[index]]


class BeamDriver(FusedDriver):
    """The fused driver with beam search."""

    def search(
        self, policy: FrozenPolicy, plan: Plan, width: int, best: int, scored: int, temperature: float, recombine: bool
    ) -> Beams:
        """Search all examples."""
        beams = Beams(self.examples, best, self.compiled)
        head = (self.bound, self.data, policy, Beam(plan, scored, float(temperature), recombine))
        parts = np.linspace(0, len(self.examples), self.threads + 1).astype(np.int64)
        work = [
            (*head, scratch, beam_paths(self.examples, width, self.compiled), parts[k : k + 2], beams.found)
            for k, scratch in enumerate(self._scratches(policy))
        ]

        def again(at: int) -> None:
            search_beam(
                *head,
                self._fresh(policy),
                beam_paths(self.examples, width, self.compiled),
                np.array([at, at + 1]),
                beams.found,
            )

        self._run(beam_kernel, work, again)
        return beams


class BatchBeamDriver(LockStepDriver):
    """The lock-step driver with beam search."""

    def search(
        self, policy: Any, plan: Plan, width: int, best: int, scored: int, temperature: float, recombine: bool
    ) -> Beams:
        """Search all examples."""
        beams = Beams(self.examples, best, self.compiled)
        beam = Beam(plan, scored, float(temperature), recombine)
        most = min(TOGETHER, adapted(policy).most_examples or TOGETHER)
        for low in range(0, len(self.examples), most):
            some = range(low, min(low + most, len(self.examples)))
            self._search_together(policy, beam, width, some, beams)
        return beams

    def _search_together(self, policy: Any, beam: Beam, width: int, some: range, beams: Beams) -> None:
        """Search some examples, asking a policy that scores batches for each step of all their beams at once."""
        policy = self._begin(policy, np.array(some))
        scratch, none = self._fresh(None), np.zeros((0, 1), np.float32)
        waiting = [
            (beam_paths(self.examples, width, self.compiled), np.array([example, -1, 0, 0]), none) for example in some
        ]
        while waiting:
            live = []
            for paths, progress, costs in waiting:
                turn = BeamTurn(progress, costs, costs.view(np.int32))
                arguments = (self.bound, self._unlabelled, beam, scratch, paths, turn, beams.found)
                self._run(advance_kernel, [arguments], lambda _: None)
                if progress[3]:
                    live.append((paths, progress, np.flatnonzero(paths.live[: progress[2]])))
            if not live:
                return
            example = np.concatenate([np.full(at.size, progress[0]) for _, progress, at in live])
            steps = np.concatenate([np.full(at.size, progress[1]) for _, progress, at in live])
            memory = np.concatenate([paths.states[progress[1] & 1, at] for paths, progress, at in live])
            legal = np.concatenate([paths.legal[at] for paths, _, at in live])
            costs, most = np.empty(legal.shape, np.float32), policy.batch or example.size
            for low in range(0, example.size, most):
                part = slice(low, low + most)
                rows = np.arange(low, min(low + most, example.size))
                states = States(
                    self.examples,
                    example[part],
                    steps[part],
                    np.zeros(rows.size, np.int64),
                    find_states=lambda found=(memory, rows, legal[part]): found,  # type: ignore[misc]
                    find_features=self._gather,
                )
                self._take_costs(policy, states, policy.costs(states), costs[part])
            ends = np.cumsum([at.size for _, _, at in live])[:-1]
            waiting = [(*each[:2], own) for each, own in zip(live, np.split(costs, ends))]


def beam_search(
    model: Deciding,
    examples: Examples,
    *,
    width: int = 8,
    best: int = 1,
    recombine: bool | None = None,
    score: str = "regret",
    temperature: float = 1.0,
) -> Beams:
    """Find the best end states of each example by beam search with a model's policy.

    Ties go to the path that was better before the step, then to the lower action. A beam of width 1 gives the greedy
    prediction.

    Parameters
    ----------
    model
        A model with a single deterministic policy: neither Searn's mixture nor `ties="random"`.
    examples
        The data set; the truth is not needed.
    width
        How many paths are kept at each step. Paths that have ended stay and compete with the others.
    best
        The number of results for each example, at most `width`.
    recombine
        Whether only the best of several paths with the same `key` is kept. That leaves more room in the beam for
        others, but loses results that differ only in earlier decisions. None stands for True if `best` is 1 and the
        space has `key`.
    score
        What is summed along a path. "regret": how much more than the best action of its state an action is predicted to
        cost. Then the greedy prediction has score 0 and comes first. Every path can be completed without further
        regret, so the results are the exact best, and `width` need not be larger than `best`. "cost": the predicted
        cost of an action; then a path that looks worse at first may win, and a wider beam usually finds better scores.
        "surprise": minus the logarithm of the action's share in a softmax of the costs, so that a path with clear
        decisions later on may win over one that looked better at first.
    temperature
        Of that softmax: the costs are divided by it.

    Examples
    --------
    >>> import lols
    >>> from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
    >>> space = tagging_space(labels=3)
    >>> model = lols.train(space, tagging_data(20, labels=3), tagging_references()["optimal"], passes=1, compiled=False)
    >>> found = beam_search(model, lols.Examples(space, [{"words": [4, 5]}]), width=4, best=2)
    >>> found.outputs(0)[0] == (model.predict_one({"words": [4, 5]}), 0.0)
    True
    >>> len(found.actions(0)), bool(found.scores(0)[0] <= found.scores(0)[1])
    (2, True)

    """
    check_whole("the width of a beam", width, most=MOST_WIDE)
    if best < 1 or best > width:
        raise ConfigurationError(f"a beam of width={width} cannot give the best={best}: choose 1 <= best <= width")
    if score not in SCORES:
        raise ConfigurationError(f"score={score!r} is not one of {', '.join(SCORES)}")
    if not 0.0 < temperature < np.inf:
        raise ConfigurationError(f"temperature is {temperature}; it must be positive")
    if model.decides.components > 1:
        raise ConfigurationError("beam search needs one policy, and this model is a mixture of several (Searn's)")
    if model.plan.random_ties:
        raise ConfigurationError('beam search is deterministic, and this model breaks ties at random: use ties="first"')
    if recombine and model.space.key is None:
        raise ConfigurationError("recombine=True needs a space with `key`, which says which paths have met")
    if recombine is None:
        recombine = best == 1 and model.space.key is not None
    how: Any = {"threads": model.threads, "compiled": model.compiled}
    with model.decides.beam_driver(model.space, examples, **how) as driver:
        beams: Beams = driver.search(model.policy, model.plan, width, best, SCORES[score], temperature, recombine)
        return beams


def best_paths(model: Deciding, examples: Examples, width: int) -> Predictions:
    """Of all paths that a beam ends with, the one of least loss for each example; of equal ones the first."""
    if not examples.has_truth:
        raise SpaceError("the loss chooses among paths, and these examples have no truth `y`, so it is unknown")
    found = beam_search(model, examples, width=width, best=width)
    predictions, most = Predictions(examples, model.compiled), int(found.found.counts.max(initial=0))
    losses = np.zeros((most, len(examples)))
    with model.driver(examples) as driver:
        for rank in range(most):
            for index in range(len(examples)):  # one with fewer paths has its last one again, which changes nothing
                predictions.state(index)[:] = found.states(index)[min(rank, found.found.counts[index] - 1)]
            losses[rank] = driver.losses(predictions, model.policy)
    for index, best in enumerate(losses.argmin(axis=0).tolist()):
        predictions.state(index)[:] = found.states(index)[best]
        taken = found.actions(index)[best]
        predictions.taken[predictions.first_step[index] : predictions.first_step[index] + taken.size] = taken
    return predictions
