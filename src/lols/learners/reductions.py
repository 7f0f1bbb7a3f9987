"""Reductions from cost-sensitive classification: CSOAA, SECOC and the cost-sensitive hinge; and the learning kernel.

CSOAA (the paper's appendix A) regresses every action's cost. SECOC (Langford & Beygelzimer 2005) asks, for subsets of
the actions given by an error-correcting code and for several thresholds, whether the subset's share of what can be
saved is above the threshold, weighted by how much it matters. The hinge widens the margin between the best-liked
cheapest action and the worst violator. All predict costs: the least is chosen.
"""

from __future__ import annotations

import numpy as np

from lols.engine.compile.dual import dual
from lols.engine.compile.kernel import Kernel
from lols.engine.scoring import worst_violation
from lols.engine.table import insert, lookup
from lols.learners.structures import BAD, CSOAA, DROPPED, NAG, PERCEPTRON, ROUNDS, STATES, WEIGHT
from lols.learners.updates import invariant_step, move, multiplier, regress_rows, sensitize


@dual
def find_rows(bank, ids, first, last, rows, counters):
    """Rows of features, new ones given a row; those beyond the table's limit are counted as dropped."""
    for k in range(first, last):
        rows[k - first] = insert(bank.table, ids[k], bank.filled, bank.most)
        counters[DROPPED] += rows[k - first] < 0


@dual
def known_rows(bank, ids, first, last, rows):
    """Rows of features that were looked for before: nothing is inserted or counted again."""
    for k in range(first, last):
        rows[k - first] = lookup(bank.table, ids[k])


@dual
def predict_columns(bank, rows, values, first, last, columns):
    """Scores of all columns with the weights as they are now."""
    for j in range(columns.size):
        columns[j] = 0.0
    for k in range(first, last):
        row = rows[k - first]
        if row >= 0:
            for j in range(columns.size):
                columns[j] += values[k] * bank.weights[row, j]


@dual
def predict_single(bank, rows, values, first, last):
    """Score of one action's own features."""
    total = np.float32(0.0)
    for k in range(first, last):
        row = rows[k - first]
        if row >= 0:
            total += values[k] * bank.weights[row, 0]
    return total


@dual
def aim_csoaa(slots, slot, work):
    """Every evaluated action's regressor aims at its cost."""
    weight = slots.weight[slot]
    for j in range(work.columns.size):
        given = np.isfinite(slots.costs[slot, j])
        work.importance[j] = weight if given else np.float32(0.0)
        work.targets[j] = slots.costs[slot, j] if given else work.columns[j]


@dual
def learn_csoaa_by_action(shared, single, recipe, slots, slot, work, counters):
    """Regress costs where actions have features of their own: one action after the other, since they share weights."""
    first, last = slots.start[slot], slots.stop[slot]
    weight = slots.weight[slot]
    for a in range(slots.costs.shape[1]):
        if not np.isfinite(slots.costs[slot, a]):
            continue
        low, high = slots.action_start[slot, a], slots.action_stop[slot, a]
        find_rows(single, slots.action_ids, low, high, work.action_rows, counters)
        predicted = work.columns[a] + predict_single(single, work.action_rows, slots.action_values, low, high)
        residual = slots.costs[slot, a] - predicted
        amount = -np.float32(2.0) * residual * weight
        if recipe.update == NAG:
            square = np.float32(4.0) * residual * residual * weight
            counters[WEIGHT] += weight
            total = sensitize(shared, work.rows, slots.values, first, last, a, square, weight, counters)
            total += sensitize(single, work.action_rows, slots.action_values, low, high, 0, square, weight, counters)
            factor = multiplier(counters)
            times = np.float64(recipe.rate) * np.float64(weight)
            amount = -invariant_step(residual, times, total * factor) * factor
        if residual != 0.0:
            move(shared, recipe, work.rows, slots.values, first, last, a, amount, counters)
            move(single, recipe, work.action_rows, slots.action_values, low, high, 0, amount, counters)


@dual
def aim_secoc(recipe, code, slots, slot, work):
    """One weighted binary example per subset and threshold: is the subset's share of the savings above the threshold?

    Savings are what an action costs less than the worst one. Shares of the costs themselves would hardly differ between
    subsets when there are many actions and few cheap ones.
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
def learn_hinge(shared, single, recipe, by_action, slots, slot, work, counters):
    """Widen the margin between the best-liked cheapest action and the worst violator, if it is too small."""
    for a in range(slots.costs.shape[1]):
        work.costs[a] = work.columns[a]
    if by_action:
        for a in range(slots.costs.shape[1]):
            if np.isfinite(slots.costs[slot, a]):
                low, high = slots.action_start[slot, a], slots.action_stop[slot, a]
                known_rows(single, slots.action_ids, low, high, work.action_rows)
                work.costs[a] += predict_single(single, work.action_rows, slots.action_values, low, high)
    good, bad, violation = worst_violation(slots.costs[slot], work.costs, recipe.margin)
    if violation > 0.0 or (violation == 0.0 and recipe.update == PERCEPTRON):
        widen(shared, single, recipe, by_action, slots, slot, good, bad, violation, work, counters)


@dual
def widen(shared, single, recipe, by_action, slots, slot, good, bad, violation, work, counters):
    """Make the good action look cheaper and the bad one dearer."""
    first, last = slots.start[slot], slots.stop[slot]
    weight = slots.weight[slot]
    find_rows(shared, slots.ids, first, last, work.rows, counters)
    if by_action:
        for a in (good, bad):
            low, high = slots.action_start[slot, a], slots.action_stop[slot, a]
            find_rows(single, slots.action_ids, low, high, work.action_rows, counters)
    if recipe.weighted:
        weight *= slots.costs[slot, bad] - slots.costs[slot, good]
    amount = weight
    if recipe.update == NAG:
        counters[WEIGHT] += weight
        total = sensitize(shared, work.rows, slots.values, first, last, good, weight, weight, counters)
        total += sensitize(shared, work.rows, slots.values, first, last, bad, weight, weight, counters)
        if by_action:
            for a in (good, bad):
                low, high = slots.action_start[slot, a], slots.action_stop[slot, a]
                known_rows(single, slots.action_ids, low, high, work.action_rows)
                total += sensitize(
                    single, work.action_rows, slots.action_values, low, high, 0, weight, weight, counters
                )
        factor = multiplier(counters)
        enough = np.float64(violation) / max(np.float64(total * factor), 1e-12)
        amount = np.float32(min(np.float64(recipe.rate) * np.float64(weight), enough)) * factor
    move(shared, recipe, work.rows, slots.values, first, last, good, amount, counters)
    move(shared, recipe, work.rows, slots.values, first, last, bad, -amount, counters)
    if by_action:
        for a in (good, bad):
            low, high = slots.action_start[slot, a], slots.action_stop[slot, a]
            known_rows(single, slots.action_ids, low, high, work.action_rows)
            signed = amount if a == good else -amount
            move(single, recipe, work.action_rows, slots.action_values, low, high, 0, signed, counters)


@dual
def ready(shared, slots, slot, insert_all, work, counters):
    """Whether a state is to be learned from; if so, its rows and the scores of all columns are in the workspace."""
    if slots.weight[slot] <= 0.0 or counters[BAD] != 0.0:
        return False
    first, last = slots.start[slot], slots.stop[slot]
    if insert_all:
        find_rows(shared, slots.ids, first, last, work.rows, counters)
    else:
        known_rows(shared, slots.ids, first, last, work.rows)
    predict_columns(shared, work.rows, slots.values, first, last, work.columns)
    for j in range(work.columns.size):
        if not np.isfinite(work.columns[j]):
            counters[BAD] = counters[ROUNDS]
            return False
    counters[STATES] += 1.0
    return True


def learn_margins(library, batch, count, shared, single, recipe, by_action, work, counters):
    """The hinge: learn from the first `count` examples of a batch, in order; each is one round of Algorithm 1."""
    for b in range(count):
        counters[ROUNDS] += 1.0
        for slot in range(batch.first[b], batch.first[b] + batch.filled[b]):
            # A feature takes a row when its weights first change: most never do.
            if ready(shared, batch.slots, slot, False, work, counters):
                learn_hinge(shared, single, recipe, by_action, batch.slots, slot, work, counters)


def learn_costs(library, batch, count, shared, single, recipe, by_action, code, work, counters):
    """CSOAA and SECOC: the same, by regression of many columns at once."""
    slots = batch.slots
    for b in range(count):
        counters[ROUNDS] += 1.0
        for slot in range(batch.first[b], batch.first[b] + batch.filled[b]):
            if not ready(shared, slots, slot, True, work, counters):
                continue
            if recipe.reduction == CSOAA and by_action:
                learn_csoaa_by_action(shared, single, recipe, slots, slot, work, counters)
                continue
            if recipe.reduction == CSOAA:
                aim_csoaa(slots, slot, work)
            else:
                aim_secoc(recipe, code, slots, slot, work)
            regress_rows(shared, recipe, work.rows, slots.values, slots.start[slot], slots.stop[slot], work, counters)


def average(library, bank, rounds, made):
    """The mean of the weights after each round."""
    for row in range(bank.filled[0]):
        for j in range(made.shape[1]):
            whole = np.float64(bank.weights[row, j]) * (rounds + 1.0) - np.float64(bank.sums[row, j])
            made[row, j] = np.float32(whole / rounds)


average_kernel = Kernel(average)
learn_margins_kernel = Kernel(learn_margins)
learn_costs_kernel = Kernel(learn_costs)
