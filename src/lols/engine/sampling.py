"""Search at prediction time: several samples of the learned policy, of which the loss keeps the best.

Sample 0 of an example is the greedy prediction. The next ones, if several starts are wanted, begin with another action
and are greedy from there on. All others draw their actions from a softmax of the predicted costs. A draw is a hash of
seed, example, sample and step, so the result does not depend on the number of threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lols.contract.examples import Examples
from lols.engine.calls import step
from lols.engine.deciding import Deciding
from lols.engine.drivers.fused import FusedDriver
from lols.engine.drivers.predictions import Predictions
from lols.engine.policy import cheapest, draw_component, gather, new_policy, score
from lols.engine.predict import Ends
from lols.engine.search import Search, begin, final_loss, goes_on, turn_to
from lols.engine.structures import CODE, COMPONENT, TIE, FrozenPolicy, Plan
from lols.errors import ConfigurationError, SpaceError
from lols.kernels.dual import dual, take
from lols.kernels.hashing import mix, unit
from lols.kernels.kernel import Kernel
from lols.kernels.layout import Struct

COOLEST, HOTTEST = 0.05, 0.5  # temperatures of the samples, relative to what the policy thinks is at stake in a step


class Draws(Struct):
    """The samples to draw, and their losses."""

    plan: Plan
    seed: int
    starts: int  # how many of the first samples are greedy but for their first action
    temperatures: np.ndarray  # [example, sample]: 0 for the greedy one
    losses: np.ndarray  # [example, sample]
    chosen: np.ndarray  # [example]: the sample to be written; -1 while the losses are computed
    ends: Ends  # of the chosen samples


@dual
def draw_action(costs, legal, temperature, stream):
    """An action with a probability that falls exponentially in its predicted cost: the best after noise is added."""
    best, least = -1, np.inf
    for a in range(legal.size):
        if legal[a]:
            u = max(unit(mix(stream, a)), 1e-300)
            noisy = costs[a] + temperature * math.log(-math.log(u) + 1e-300)  # minus Gumbel noise
            if best < 0 or noisy < least:
                best, least = a, noisy
    return np.int64(best)


@dual
def start_action(costs, legal, rank):
    """The legal action with `rank` others before it in predicted cost, counted round if there are fewer."""
    count = 0
    for a in range(legal.size):
        count += legal[a]
    rank %= count
    for a in range(legal.size):
        if legal[a]:
            before = 0
            for b in range(legal.size):
                if legal[b] and (costs[b] < costs[a] or (costs[b] == costs[a] and b < a)):
                    before += 1
            if before == rank:
                return np.int64(a)
    return np.int64(-1)  # costs are not numbers, which the loss reports


@dual
def follow_sample(search, data, draws, s, example, sample, write):
    """Follow one sample of an example to its end state; its loss."""
    policy, scratch, plan = search.policy, search.scratch, search.plan
    legal, view, report = scratch.legal, scratch.seen, scratch.report
    here = turn_to(search, data, example, example, 0)
    key = mix(mix(mix(draws.seed, TIE), example), sample)
    temperature = draws.temperatures[example, sample]
    begin(search, here, s)
    t = 0
    while goes_on(search, here, s, t):
        gather(search, here, s, legal)
        if report[CODE] != 0:
            return 0.0
        stream = mix(key, t)
        score(search, here, s, legal, draw_component(policy.chances, mix(stream, COMPONENT)))
        if report[CODE] != 0:
            return 0.0
        if t == 0 and 0 < sample < draws.starts:
            a = start_action(view.costs, legal, sample)
        elif temperature > 0.0:
            a = draw_action(view.costs, legal, temperature, stream)
        else:
            a = cheapest(view.bits, legal, plan.random_ties, mix(stream, TIE))
        if write:
            draws.ends.taken[draws.ends.first_step[example] + t] = a
        step(search.space, here.x, s, a)
        t += 1
    if report[CODE] != 0:
        return 0.0
    if write:
        draws.ends.taken[draws.ends.first_step[example] + t] = -1
    return final_loss(search.space, here.x, here.y, s, report)


def sample(space, data, policy, draws, scratch, counter):
    """Compute the losses of all samples of all examples, or write the chosen ones; threads share one counter."""
    search = Search(space, None, policy, draws.plan, data.items, scratch)
    report, samples, ends = scratch.report, draws.losses.shape[1], draws.ends
    losing = draws.chosen[0] < 0
    units = draws.losses.size if losing else draws.chosen.size
    unit_number = take(counter)
    while unit_number < units and report[CODE] == 0:
        if losing:
            example, number = unit_number // samples, unit_number % samples
            s = scratch.state[: data.states[example]]
        else:
            example, number = unit_number, draws.chosen[unit_number]
            s = ends.states[ends.first[example] : ends.first[example] + data.states[example]]
        final = follow_sample(search, data, draws, s, example, number, not losing)
        if losing:
            draws.losses[example, number] = final
        unit_number = take(counter)
    return report[CODE]


sample_kernel = Kernel(sample)


@dataclass(frozen=True)
class Samples:
    """The best samples of each example."""

    predictions: Predictions
    all_losses: np.ndarray  # [example, sample]: sample 0 is the greedy prediction
    chosen: np.ndarray  # [example]: the number of its best sample, the first of several

    @property
    def losses(self) -> np.ndarray:
        """The loss of the best sample of each example."""
        return np.take_along_axis(self.all_losses, self.chosen[:, np.newaxis], axis=1)[:, 0]


class SamplingDriver(FusedDriver):
    """The fused driver with sampling."""

    def search(
        self, policy: FrozenPolicy, plan: Plan, best_of: int, starts: int, temperature: float, seed: int
    ) -> Samples:
        """Draw samples of all examples, and follow the best one of each again."""
        predictions = Predictions(self.examples, self.compiled)
        count, levels = len(self.examples), levels_of(best_of, starts)
        stake = self.stakes(policy, plan) if best_of > starts else np.zeros(count)
        draws = Draws(
            plan=plan,
            seed=seed,
            starts=starts,
            temperatures=temperature * stake[:, np.newaxis] * levels,
            losses=np.zeros((count, best_of)),
            chosen=np.full(count, -1, np.int64),
            ends=predictions.ends,
        )
        self._draw(policy, draws)
        draws.chosen[:] = draws.losses.argmin(axis=1)
        self._draw(policy, draws)
        return Samples(predictions, draws.losses, draws.chosen.copy())

    def stakes(self, policy: FrozenPolicy, plan: Plan) -> np.ndarray:
        """By how much the second-best action of a step is predicted to cost more: the mean over a greedy prediction."""
        greedy = self.predict(policy, plan, scores=True)
        costs = np.sort(greedy.scores, axis=1)[:, :2].astype(np.float64)
        if costs.shape[1] < 2:
            return np.zeros(len(self.examples))
        of = np.repeat(np.arange(len(self.examples)), self.examples.steps + 1)
        chosen = (greedy.taken >= 0) & np.isfinite(costs[:, 1])  # steps with a choice
        of, costs, count = of[chosen], costs[chosen], len(self.examples)
        sums = np.bincount(of, costs[:, 1] - costs[:, 0], minlength=count)
        return sums / np.maximum(np.bincount(of, minlength=count), 1)

    def _draw(self, policy: FrozenPolicy, draws: Draws) -> None:
        counter = np.zeros(1, np.int64)
        head = (self.bound, self.data, policy, draws)
        scratches = self._scratches(policy)
        for scratch in scratches:
            new_policy(scratch.seen)

        def again(example: int) -> None:
            alone = np.array([example * draws.losses.shape[1] if draws.chosen[0] < 0 else example], np.int64)
            sample(*head, self._fresh(policy), alone)

        self._run(sample_kernel, [(*head, scratch, counter) for scratch in scratches], again)


def levels_of(best_of: int, starts: int) -> np.ndarray:
    """The temperatures of all samples, relative to what is at stake; the first `starts` are greedy."""
    drawn = best_of - starts
    levels = np.geomspace(COOLEST, HOTTEST, drawn) if drawn > 1 else np.ones(drawn)
    return np.concatenate([np.zeros(starts), levels])


def check_samples(best_of: Any, starts: Any, temperature: float) -> None:
    """Raise an error if samples cannot be drawn like this."""
    if not isinstance(best_of, int) or best_of < 1:
        raise ConfigurationError(f"best_of is {best_of!r}; it must be a whole number from 1 on")
    if not isinstance(starts, int) or not 1 <= starts <= best_of:
        raise ConfigurationError(f"starts is {starts!r}; it must be a whole number from 1 to best_of={best_of}")
    if not 0.0 < temperature < np.inf:
        raise ConfigurationError(f"temperature is {temperature}; it must be positive")


def best_samples(
    model: Deciding, examples: Examples, best_of: int, *, starts: int = 1, temperature: float = 1.0, seed: int = 0
) -> Samples:
    """Draw `best_of` samples of each example from a model's policy, and keep the one of least loss.

    The first sample is the greedy prediction, so the result is never worse. The next ones, up to `starts`, are greedy
    after another first action. The others are drawn at different temperatures, from nearly greedy to one that often
    takes the second-best action; `temperature` scales all of them.

    Examples
    --------
    >>> import lols
    >>> from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
    >>> space, data = tagging_space(labels=3), tagging_data(20, labels=3)
    >>> model = lols.train(space, data, tagging_references()["optimal"], passes=1, compiled=False)
    >>> samples = best_samples(model, lols.Examples(space, data), 4)
    >>> bool((samples.losses <= samples.all_losses[:, 0]).all())
    True

    """
    check_samples(best_of, starts, temperature)
    if not model.decides.has_weights:
        raise ConfigurationError("sampling needs a linear policy")
    if not examples.has_truth:
        raise SpaceError("the loss chooses among samples, and these examples have no truth `y`, so it is unknown")
    driver = SamplingDriver(model.space, examples, threads=model.threads, compiled=model.compiled)
    with driver:
        return driver.search(model.policy, model.plan, best_of, starts, float(temperature), int(seed))
