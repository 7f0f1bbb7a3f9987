"""Reductions from cost-sensitive classification: CSOAA, SECOC and the cost-sensitive hinge; and the learning kernel.

CSOAA (the paper's appendix A) regresses the cost of every action. SECOC (Langford & Beygelzimer 2005) predicts, for
subsets of the actions given by an error-correcting code and for several thresholds, whether the subset's share of the
savings is above the threshold, weighted by the difference. The hinge widens the margin between the cheapest action of
least predicted cost and the worst violator. All of them predict costs, and the action of least cost is chosen.
"""

from __future__ import annotations

import numpy as np

from lols.engine.margins import worst_violation
from lols.engine.table import insert, lookup
from lols.kernels.dual import dual
from lols.kernels.kernel import Kernel
from lols.learners.sketch import regress_sketched
from lols.learners.structures import (
    BAD,
    CSOAA,
    DROPPED,
    NAG,
    PERCEPTRON,
    ROUNDS,
    STATES,
    WEIGHT,
    FeaturePart,
    LearnerView,
)
from lols.learners.updates import invariant_step, move, multiplier, regress_rows, sensitize


@dual
def find_rows(bank, ids, first, last, rows, counters):
    """Rows of features; new features get a row, and those beyond the limit of the table are counted as dropped."""
    for k in range(first, last):
        rows[k - first] = insert(bank.table, ids[k], bank.filled, bank.most)
        counters[DROPPED] += rows[k - first] < 0


@dual
def known_rows(bank, ids, first, last, rows):
    """Rows of features; nothing is inserted or counted."""
    for k in range(first, last):
        rows[k - first] = lookup(bank.table, ids[k])


@dual
def predict_columns(part, columns):
    """Scores of all columns with the current weights."""
    weights, rows, values, first, last = part.bank.weights, part.rows, part.values, part.first, part.last
    for j in range(columns.size):
        columns[j] = 0.0
    for k in range(first, last):
        row = rows[k - first]
        if row >= 0:
            value = values[k]
            for j in range(columns.size):
                columns[j] += value * weights[row, j]


@dual
def predict_single(part):
    """Score of one action's own features."""
    total = np.float32(0.0)
    for k in range(part.first, part.last):
        row = part.rows[k - part.first]
        if row >= 0:
            total += part.values[k] * part.bank.weights[row, 0]
    return total


@dual
def own_part(learning, slots, slot):
    """The features of a state in the shared bank; their rows are in the workspace."""
    return FeaturePart(learning.shared, learning.work.rows, slots.values, slots.start[slot], slots.stop[slot])


@dual
def action_part(learning, slots, slot, a):
    """The features of an action in their bank; their rows are still to be found."""
    low, high = slots.action_start[slot, a], slots.action_stop[slot, a]
    return FeaturePart(learning.single, learning.work.action_rows, slots.action_values, low, high)


@dual
def aim_csoaa(slots, slot, work):
    """Set the targets: the cost of every evaluated action."""
    weight, costs = slots.weight[slot], slots.costs[slot]
    for j in range(work.columns.size):
        given = np.isfinite(costs[j])
        work.importance[j] = weight if given else np.float32(0.0)
        work.targets[j] = costs[j] if given else work.columns[j]


@dual
def learn_csoaa_by_action(learning, slots, slot):
    """Regress costs if actions have their own features: one action after the other, because they share weights."""
    recipe, work, counters, weight = learning.recipe, learning.work, learning.counters, slots.weight[slot]
    own = own_part(learning, slots, slot)
    for a in range(slots.costs.shape[1]):
        if not np.isfinite(slots.costs[slot, a]):
            continue
        part = action_part(learning, slots, slot, a)
        find_rows(part.bank, slots.action_ids, part.first, part.last, part.rows, counters)
        residual = slots.costs[slot, a] - (work.columns[a] + predict_single(part))
        amount = -np.float32(2.0) * residual * weight
        if recipe.update == NAG:
            square = np.float32(4.0) * residual * residual * weight
            counters[WEIGHT] += weight
            total = sensitize(own, a, square, weight, counters)
            total += sensitize(part, 0, square, weight, counters)
            factor = multiplier(counters)
            times = np.float64(recipe.rate) * np.float64(weight)
            amount = -invariant_step(residual, times, total * factor) * factor
        if residual != 0.0:
            move(own, recipe, a, amount, counters)
            move(part, recipe, 0, amount, counters)


@dual
def aim_secoc(recipe, code, slots, slot, work):
    """Set the targets: for each subset and threshold, whether the subset's share of the savings is above the threshold.

    The savings of an action are the cost of the worst action minus its own. Shares of the costs themselves would hardly
    differ between subsets if there are many actions and few cheap ones.
    """
    worst = np.float32(0.0)
    for a in range(slots.costs.shape[1]):
        if np.isfinite(slots.costs[slot, a]):
            worst = max(worst, slots.costs[slot, a])
    total = np.float32(0.0)
    for a in range(slots.costs.shape[1]):
        if np.isfinite(slots.costs[slot, a]):
            total += worst - slots.costs[slot, a]
    for subset in range(code.shape[0]):
        inside = np.float32(0.0)
        for a in range(slots.costs.shape[1]):
            if code[subset, a] > 0.0 and np.isfinite(slots.costs[slot, a]):
                inside += worst - slots.costs[slot, a]
        for h in range(recipe.thresholds):
            j = subset * recipe.thresholds + h
            gap = inside - total * np.float32((h + 0.5) / recipe.thresholds)
            work.targets[j] = np.float32(1.0) if gap >= 0.0 else np.float32(-1.0)
            work.importance[j] = abs(gap) * slots.weight[slot]


@dual
def learn_hinge(learning, slots, slot):
    """Widen the margin between the cheapest action of least predicted cost and the worst violator, if too small."""
    recipe, work = learning.recipe, learning.work
    for a in range(slots.costs.shape[1]):
        work.costs[a] = work.columns[a]
    if recipe.by_action:
        for a in range(slots.costs.shape[1]):
            if np.isfinite(slots.costs[slot, a]):
                part = action_part(learning, slots, slot, a)
                known_rows(part.bank, slots.action_ids, part.first, part.last, part.rows)
                work.costs[a] += predict_single(part)
    good, bad, violation = worst_violation(slots.costs[slot], work.costs, recipe.margin)
    if violation > 0.0 or (violation == 0.0 and recipe.update == PERCEPTRON):
        widen(learning, slots, slot, good, bad, violation)


@dual
def widen(learning, slots, slot, good, bad, violation):
    """Lower the predicted cost of the good action, and raise that of the bad one."""
    recipe, counters, weight = learning.recipe, learning.counters, slots.weight[slot]
    own = own_part(learning, slots, slot)
    find_rows(own.bank, slots.ids, own.first, own.last, own.rows, counters)
    if recipe.by_action:
        for a in (good, bad):
            part = action_part(learning, slots, slot, a)
            find_rows(part.bank, slots.action_ids, part.first, part.last, part.rows, counters)
    if recipe.weighted:
        weight *= slots.costs[slot, bad] - slots.costs[slot, good]
    amount = weight
    if recipe.update == NAG:
        counters[WEIGHT] += weight
        total = sensitize(own, good, weight, weight, counters)
        total += sensitize(own, bad, weight, weight, counters)
        if recipe.by_action:
            for a in (good, bad):
                part = action_part(learning, slots, slot, a)
                known_rows(part.bank, slots.action_ids, part.first, part.last, part.rows)
                total += sensitize(part, 0, weight, weight, counters)
        factor = multiplier(counters)
        enough = np.float64(violation) / max(np.float64(total * factor), 1e-12)
        amount = np.float32(min(np.float64(recipe.rate) * np.float64(weight), enough)) * factor
    move(own, recipe, good, amount, counters)
    move(own, recipe, bad, -amount, counters)
    if recipe.by_action:
        for a in (good, bad):
            part = action_part(learning, slots, slot, a)
            known_rows(part.bank, slots.action_ids, part.first, part.last, part.rows)
            move(part, recipe, 0, amount if a == good else -amount, counters)


@dual
def ready(learning, slots, slot, insert_all):
    """Whether a state is to be learned from; then its rows and the scores of all columns are in the workspace."""
    work, counters = learning.work, learning.counters
    if slots.weight[slot] <= 0.0 or counters[BAD] != 0.0:
        return False
    own = own_part(learning, slots, slot)
    if insert_all:
        find_rows(own.bank, slots.ids, own.first, own.last, own.rows, counters)
    else:
        known_rows(own.bank, slots.ids, own.first, own.last, own.rows)
    predict_columns(own, work.columns)
    for j in range(work.columns.size):
        if not np.isfinite(work.columns[j]):
            counters[BAD] = counters[ROUNDS]
            return False
    counters[STATES] += 1.0
    return True


def learn_margins(lessons, count, shared, single, recipe, work, counters):
    """The hinge: learn from the first `count` rounds, in order; each is line 14 of Algorithm 1."""
    learning, slots = LearnerView(shared, single, recipe, None, work, counters), lessons.slots
    for b in range(count):
        counters[ROUNDS] += 1.0
        for slot in range(lessons.first[b], lessons.first[b] + lessons.filled[b]):
            # A feature gets a row when its weights first change, which most never do.
            if ready(learning, slots, slot, False):
                learn_hinge(learning, slots, slot)


def learn_costs(lessons, count, shared, single, recipe, code, work, counters):
    """CSOAA and SECOC: the same by regression, all columns at once."""
    learning, slots = LearnerView(shared, single, recipe, code, work, counters), lessons.slots
    for b in range(count):
        counters[ROUNDS] += 1.0
        for slot in range(lessons.first[b], lessons.first[b] + lessons.filled[b]):
            if not ready(learning, slots, slot, True):
                continue
            if recipe.reduction == CSOAA and recipe.by_action:
                learn_csoaa_by_action(learning, slots, slot)
                continue
            if recipe.reduction == CSOAA:
                aim_csoaa(slots, slot, work)
            else:
                aim_secoc(recipe, code, slots, slot, work)
            regress_rows(own_part(learning, slots, slot), recipe, work, counters)


def learn_sketched(lessons, count, shared, single, recipe, sketches, work, counters):
    """CSOAA by sketched regression: one action after the other."""
    learning, slots = LearnerView(shared, single, recipe, None, work, counters), lessons.slots
    for b in range(count):
        counters[ROUNDS] += 1.0
        for slot in range(lessons.first[b], lessons.first[b] + lessons.filled[b]):
            weight = slots.weight[slot]
            if weight <= 0.0 or counters[BAD] != 0.0:
                continue
            counters[STATES] += 1.0
            own = own_part(learning, slots, slot)
            find_rows(own.bank, slots.ids, own.first, own.last, own.rows, counters)
            part = FeaturePart(single, work.action_rows, slots.action_values, 0, 0)
            for a in range(slots.costs.shape[1]):
                if not np.isfinite(slots.costs[slot, a]):
                    continue
                if recipe.by_action:
                    part = action_part(learning, slots, slot, a)
                    find_rows(part.bank, slots.action_ids, part.first, part.last, part.rows, counters)
                j = 0 if recipe.by_action else a
                if not regress_sketched(own, a, part, sketches, j, recipe, slots.costs[slot, a], weight):
                    counters[BAD] = counters[ROUNDS]


def average(bank, rounds, means):
    """The mean of the weights after each round: line 16 of Algorithm 1."""
    for row in range(bank.filled[0]):
        for j in range(means.shape[1]):
            whole = np.float64(bank.weights[row, j]) * (rounds + 1.0) - np.float64(bank.sums[row, j])
            means[row, j] = np.float32(whole / rounds)


average_kernel = Kernel(average)
learn_margins_kernel = Kernel(learn_margins)
learn_costs_kernel = Kernel(learn_costs)
learn_sketched_kernel = Kernel(learn_sketched)
