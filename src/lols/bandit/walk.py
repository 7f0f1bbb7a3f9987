"""One decision: a walk through the search space with no random action, one of them, or one at each step."""

from __future__ import annotations

import math

import numpy as np

from lols.engine.calls import step
from lols.engine.lessons import write_features
from lols.engine.policy import cheapest, gather, new_policy, score
from lols.engine.search import Search, begin, find_legal, instance, turn_to
from lols.engine.structures import AT_STEP, CODE, FILLED, NO_ACTIONS, TEACHER, TIE, TOO_MANY_STEPS, Plan, following
from lols.engine.table import lookup
from lols.engine.teacher import teacher_action
from lols.kernels.dual import dual, has
from lols.kernels.hashing import mix, unit
from lols.kernels.kernel import Kernel
from lols.kernels.layout import Struct
from lols.learners.sketch import peek, spread_of

EXPLOIT, REFERENCE, EXPLORE, RANDOMISED = 0, 1, 2, 3  # the modes of a walk
UNIFORM, BOLTZMANN, PLAUSIBLE, GAP = 0, 1, 2, 3  # the distributions of actions
EXPLORATIONS = {"uniform": UNIFORM, "boltzmann": BOLTZMANN, "plausible": PLAUSIBLE, "gap": GAP}
LENGTH, STEP, ACTION, COIN, FEATURES, ACTION_FEATURES, NOTES = range(7)  # the cells of `Walked.note`
CHANCE_STEP, CHANCE_ACTION, PROPENSITY, CHANCES = range(4)  # the cells of `Walked.chance`
WHEN, WHICH, WHO, DRAW = 11, 12, 13, 14  # purposes of draws


FOLLOWING = following(0, False)


class WalkPlan(Struct):
    """How to walk. All random numbers come from the stream."""

    mode: int
    stream: int
    beta: float  # the reference's chance to complete a deviation
    epsilon: float  # if each step is randomised: their total chance to be, shared by the most steps there may be
    exploration: int
    width: float  # the temperature, or the largest predicted excess cost of a plausible action
    gap: float = 0.0  # what an excess cost of 1 adds to the inverse of a chance, for each of the most steps
    optimism: float = 0.0  # how many standard deviations costs may be below those predicted, in one step of one
    pace: float = np.inf  # in how many steps that is so; in the others, the reference acts
    plan: Plan = FOLLOWING


class Walked(Struct):
    """The results of a walk."""

    state: np.ndarray  # the end state
    trail: np.ndarray  # the actions taken
    chances: np.ndarray  # of each of them
    note: np.ndarray
    chance: np.ndarray
    legal: np.ndarray  # at the state of the deviation
    predicted: np.ndarray  # costs there
    weights: np.ndarray  # scratch: chances of actions
    low: np.ndarray  # scratch: how little actions may cost
    rows: np.ndarray  # scratch: of features
    along: np.ndarray  # scratch for the rows of a sketch, as the next two
    gain: np.ndarray
    column: np.ndarray


@dual
def weigh_gaps(legal, low, gap, out):
    """Inverse gap weighting (Foster and Rakhlin, 2020): the worse an action may be, the smaller its chance.

    It is 1 / (K + gap * excess), where `excess` is the cost above the lowest of K costs; that action has what is left.
    """
    best, count = -1, 0
    for a in range(legal.size):
        out[a] = 0.0
        if legal[a]:
            count += 1
            if best < 0 or low[a] < low[best]:
                best = a
    left = 1.0
    for a in range(legal.size):
        if legal[a] and a != best:
            out[a] = 1.0 / (count + gap * (low[a] - low[best]))
            left -= out[a]
    out[best] = left


@dual
def draw_chances(legal, predicted, exploration, width, out):
    """The chance of each legal action under an exploration; they add up to 1."""
    least = np.float32(np.inf)
    for a in range(legal.size):
        if legal[a]:
            least = min(least, predicted[a])
    total = 0.0
    for a in range(legal.size):
        out[a] = 0.0
        if legal[a]:
            above = np.float64(predicted[a] - least)
            if exploration == BOLTZMANN:
                out[a] = np.exp(-above / width)
            elif exploration == PLAUSIBLE:
                out[a] = 1.0 if above <= width else 0.0
            else:
                out[a] = 1.0
            total += out[a]
    for a in range(legal.size):
        out[a] /= total


@dual
def drawn(chances, u):
    """The action drawn by a number in [0, 1)."""
    last = -1
    for a in range(chances.size):
        if chances[a] > 0.0:
            last = a
            u -= chances[a]
            if u < 0.0:
                return a
    return last


@dual
def look_ahead(search, here, s, legal, walk_plan, slots, out):
    """Gather the features of a state, and predict the costs of its actions, and how little they may cost."""
    gather(search, here, s, legal)
    if search.policy.sketched.sketches.counts.shape[0] > 0:
        look_closely(search, here, s, legal, walk_plan.mode > REFERENCE, walk_plan.optimism / here.limit, slots, out)
    else:
        score(search, here, s, legal, 0)
        for a in range(legal.size):
            out.low[a] = np.float64(search.scratch.seen.costs[a])


@dual
def look_closely(search, here, s, legal, unsure, optimism, slots, out):
    """The same for regressions that are sketched, which know how sure they are."""
    sketched, costs = search.policy.sketched, search.scratch.seen.costs
    sketches = sketched.sketches
    several = sketches.counts.shape[0] > 1
    write_features(search, here, s, legal, slots, 0, 0, 0)
    start, stop = slots.start[0], slots.stop[0]
    for k in range(start, stop):
        out.rows[k - start] = lookup(search.policy.shared, slots.ids[k])
    for a in range(legal.size):
        if not legal[a]:
            continue
        j, cost, size = a if several else 0, 0.0, 0.0
        filled = sketches.counts[j, FILLED]
        for i in range(filled):
            out.along[i] = 0.0
        for k in range(start, stop):
            value = np.float64(slots.values[k])
            cost += add_cell(sketched.shared, out.rows[k - start], a, sketches, j, value, out)
            size += value * value
        if has(search.space, "action_features"):
            for k in range(slots.action_start[0, a], slots.action_stop[0, a]):
                row, value = lookup(search.policy.single, slots.action_ids[k]), np.float64(slots.action_values[k])
                cost += add_cell(sketched.single, row, 0, sketches, j, value, out)
                size += value * value
        for i in range(filled):
            cost += out.along[i] * sketches.shift[j, i]
        costs[a] = np.float32(cost) + np.float32(0.0)  # never -0.0
        out.low[a] = cost
        if unsure:
            out.low[a] -= optimism * math.sqrt(spread_of(sketches, j, size, out.along, out.gain))


@dual
def add_cell(columns, row, column, sketches, j, value, out):
    """Add a feature, times its value, to `along`; its cost, as far as that is in its base."""
    if row < 0:
        return 0.0
    base = peek(columns, row, column, sketches, j, out.column)
    for i in range(sketches.counts[j, FILLED]):
        out.along[i] += value * np.float64(out.column[i])
    return value * base


@dual
def weigh(here, legal, costs, walk_plan, out):
    """Write the chances of actions where something is explored to `weights`.

    A step of many changes the loss of a structure by little, so that gaps count more.
    """
    if walk_plan.exploration == GAP:
        weigh_gaps(legal, out.low, walk_plan.gap * here.limit, out.weights)
    else:
        draw_chances(legal, costs, walk_plan.exploration, walk_plan.width, out.weights)


@dual
def draw_by_gaps(search, here, s, legal, best, walk_plan, draw, out):
    """Draw an action by inverse gap weighting, or for a share of steps take the best one, or the reference's."""
    share = min(walk_plan.pace / here.limit, 1.0)
    for a in range(legal.size):
        out.weights[a] *= walk_plan.epsilon
    out.weights[best] += 1.0 - walk_plan.epsilon
    chosen = np.int64(drawn(out.weights, unit(mix(draw, DRAW))))
    if share >= 1.0:
        out.note[COIN] = 0
        return chosen
    rules = teacher_action(search, here, s, legal, mix(draw, TEACHER))
    for a in range(legal.size):
        out.weights[a] *= share
    out.weights[rules] += 1.0 - share
    if unit(mix(draw, WHO)) < share:
        out.note[COIN] = 0
        return chosen
    return np.int64(rules)


@dual
def go(search, here, s, t, by_reference, walk_plan, slots, out):
    """Walk from step t to an end state; the number of steps from the start."""
    scratch = search.scratch
    legal, view, report = scratch.legal, scratch.seen, scratch.report
    while report[CODE] == 0 and find_legal(search, here, s, legal):
        report[AT_STEP] = t
        if t >= here.limit:
            report[CODE] = TOO_MANY_STEPS
            break
        draw = mix(walk_plan.stream, t)
        out.chances[t] = 1.0
        if by_reference:
            a = teacher_action(search, here, s, legal, mix(draw, TEACHER))
        else:
            look_ahead(search, here, s, legal, walk_plan, slots, out)
            a = cheapest(view.bits, legal, False, mix(draw, TIE))
            if walk_plan.mode == RANDOMISED:
                weigh(here, legal, view.costs, walk_plan, out)
            if walk_plan.mode == RANDOMISED and walk_plan.exploration == GAP:
                a = draw_by_gaps(search, here, s, legal, a, walk_plan, draw, out)
                out.chances[t] = out.weights[a]
            elif walk_plan.mode == RANDOMISED:
                best = a
                share = walk_plan.epsilon / here.limit
                if unit(mix(draw, WHO)) < share:
                    a = np.int64(drawn(out.weights, unit(mix(draw, DRAW))))
                out.chances[t] = share * out.weights[a] + (1.0 - share if a == best else 0.0)
        if report[CODE] != 0:
            break
        out.trail[t] = a
        step(search.space, here.x, s, a)
        t += 1
    return t


@dual
def stand(search, here, s, at, walk_plan, slots, out):
    """Follow the trail to step `at`; write features to slot 0, and the legal actions, predicted costs and chances."""
    begin(search, here, s)
    for t in range(at):
        step(search.space, here.x, s, out.trail[t])
    legal, costs = search.scratch.legal, search.scratch.seen.costs
    find_legal(search, here, s, legal)
    look_ahead(search, here, s, legal, walk_plan, slots, out)
    for a in range(legal.size):
        out.legal[a] = legal[a]
        out.predicted[a] = costs[a] if legal[a] else np.float32(np.inf)
    weigh(here, legal, out.predicted, walk_plan, out)
    out.note[STEP] = at
    out.note[FEATURES], out.note[ACTION_FEATURES] = write_features(search, here, s, legal, slots, 0, 0, 0)


def walk(space, reference, data, policy, walk_plan, scratch, slots, out):
    """Make one structure; for a deviation, stop at its state.

    What was drawn is in `note` and `chance`; slot 0 has the features of the state to learn from.
    """
    report, note, s = scratch.report, out.note, out.state
    search = Search(space, reference, policy, walk_plan.plan, data.items, scratch)
    report[CODE] = 0
    new_policy(scratch.seen)
    here = turn_to(search, data, 0, 0, 0)
    begin(search, here, s)
    by_reference = walk_plan.mode == REFERENCE
    gaps = walk_plan.mode == RANDOMISED and walk_plan.exploration == GAP
    note[STEP], note[ACTION], note[COIN] = -1, -1, by_reference or gaps
    note[FEATURES], note[ACTION_FEATURES] = 0, 0
    out.chance[CHANCE_STEP] = out.chance[CHANCE_ACTION] = out.chance[PROPENSITY] = 1.0
    length = go(search, here, s, 0, by_reference, walk_plan, slots, out)
    if length == 0 and report[CODE] == 0:
        report[CODE] = NO_ACTIONS
    note[LENGTH] = length
    if report[CODE] != 0 or walk_plan.mode == EXPLOIT or by_reference:
        return report[CODE]
    if gaps:  # all steps are learned from
        for t in range(length):
            out.chance[PROPENSITY] *= out.chances[t]
        note[STEP], note[ACTION], out.chance[CHANCE_ACTION] = 0, out.trail[0], out.chances[0]
        return report[CODE]
    # If each step is drawn, the length depends on the draws, so the step to learn from must not depend on the length.
    times = here.limit if walk_plan.mode == RANDOMISED else np.int64(length)
    at = min(np.int64(unit(mix(walk_plan.stream, WHEN)) * times), np.int64(times - 1))
    if walk_plan.mode == RANDOMISED:
        for t in range(length):
            out.chance[PROPENSITY] *= out.chances[t]
        if at >= length:  # the walk ended before this step: nothing to learn from
            return report[CODE]
    stand(search, here, s, at, walk_plan, slots, out)
    out.chance[CHANCE_STEP] = 1.0 / times
    if walk_plan.mode == RANDOMISED:
        note[ACTION], out.chance[CHANCE_ACTION] = out.trail[at], out.chances[at]
        for t in range(at, length):
            step(space, here.x, s, out.trail[t])
    return report[CODE]


def deviate(space, reference, data, policy, walk_plan, scratch, slots, out):
    """From the state where `walk` stopped, draw an action by `weights`, and complete the structure."""
    note, s = out.note, out.state
    search = Search(space, reference, policy, walk_plan.plan, data.items, scratch)
    here = instance(data, 0, 0, 0)
    at, chosen = note[STEP], np.int64(drawn(out.weights, unit(mix(walk_plan.stream, WHICH))))
    by_reference = unit(mix(walk_plan.stream, WHO)) < walk_plan.beta
    note[ACTION], note[COIN], out.chance[CHANCE_ACTION] = chosen, by_reference, out.weights[chosen]
    out.trail[at] = chosen
    step(space, here.x, s, chosen)
    note[LENGTH] = go(search, here, s, at + 1, by_reference, walk_plan, slots, out)
    return scratch.report[CODE]


walk_kernel = Kernel(walk)
deviate_kernel = Kernel(deviate)
