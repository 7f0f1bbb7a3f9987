"""From a state to predicted costs: features gathered, rows of weights added, items first and history after."""

from __future__ import annotations

import numpy as np

from lols.engine.compile.dual import action_features, dual, features_of as features, has, items
from lols.engine.structures import NO_SUCH_ITEM, TOO_MANY_FEATURES, TOO_MANY_ITEMS
from lols.engine.table import lookup
from lols.hashing import mix, unit


@dual
def gather(space, x, s, item_count, sight, where):
    """Call the space's `features` and `items` into the buffers."""
    sight.features.size[0] = 0
    features(space, x, s, sight.features)
    if sight.features.size[0] > sight.features.ids.size:
        where[0] = TOO_MANY_FEATURES
        sight.features.size[0] = sight.features.ids.size
    if has(space, "items"):
        sight.items.size[0] = 0
        items(space, x, s, sight.items)
        if sight.items.size[0] > sight.items.items.size:
            where[0] = TOO_MANY_ITEMS
            sight.items.size[0] = sight.items.items.size
        for n in range(sight.items.size[0]):
            item, role = sight.items.items[n], sight.items.roles[n]
            if item < 0 or item >= item_count or role < 0 or role >= sight.item_scores.shape[1]:
                where[0], where[3] = NO_SUCH_ITEM, item
                sight.items.size[0] = n
                break


@dual
def gather_action(space, x, s, a, out, where):
    """Call the space's `action_features` into a buffer."""
    out.size[0] = 0
    action_features(space, x, s, a, out)
    if out.size[0] > out.ids.size:
        where[0] = TOO_MANY_FEATURES
        out.size[0] = out.ids.size


@dual
def own_items(first, example):
    """Where an example's items begin, and how many they are."""
    if first.size <= 1:
        return 0, 0
    return first[example], first[example + 1] - first[example]


@dual
def types_of(of, item):
    """Where an item's types begin and end."""
    if of.bounds.size > 0:
        return of.bounds[item], of.bounds[item + 1]
    return item * of.parts, (item + 1) * of.parts


@dual
def in_role(identity, role):
    """The id of an item's feature in a role; role 0 keeps the id."""
    return identity if role == 0 else mix(identity, role)


@dual
def add_row(columns, stack, component, row, value):
    """Add one feature's weights to the scores of all columns."""
    for j in range(columns.size):
        columns[j] += value * stack[component, row, j]


@dual
def new_policy(sight):
    """Forget what types contributed: the policy is another one."""
    sight.type_clock[0] += sight.type_scores.shape[0] - 1
    sight.type_clock[1] = 0


@dual
def type_place(table, stack, component, role, kind, cached, of, sight):
    """Where it is written what a type of item contributes in a role: computed once per policy where `cached`."""
    places, clock = sight.type_scores.shape[0] - 1, sight.type_clock
    place = places  # the last one is for what is not kept
    if cached and kind < of.lasting:
        known = sight.type_places[component, role, kind] - clock[0]
        if known >= 0 and known < places:
            return known
        if clock[1] == places:
            new_policy(sight)
        place = clock[1]
        clock[1] += 1
        sight.type_places[component, role, kind] = clock[0] + place
    for j in range(sight.part.size):
        sight.part[j] = 0.0
    # All look-ups first: their cache misses then overlap.
    first, last = of.start[kind], of.start[kind + 1]
    for k in range(first, last):
        sight.rows[k - first] = lookup(table, in_role(of.ids[k], role))
    for k in range(first, last):
        if sight.rows[k - first] >= 0:
            add_row(sight.part, stack, component, sight.rows[k - first], of.values[k])
    for j in range(sight.part.size):
        sight.type_scores[place, j] = sight.part[j]
    return place


@dual
def add_items(table, stack, component, cached, of, first_item, sight, epoch):
    """Add what the items contribute, each in its role; computed once per example where `cached`."""
    for n in range(sight.items.size[0]):
        item, role = sight.items.items[n], sight.items.roles[n]
        if cached and sight.item_epochs[component, role, item] == epoch:
            for j in range(sight.columns.size):
                sight.columns[j] += sight.item_scores[component, role, item, j]
            continue
        whole = sight.whole
        for j in range(whole.size):
            whole[j] = 0.0
        low, high = types_of(of, first_item + item)
        for k in range(low, high):
            place = type_place(table, stack, component, role, of.types[k], cached, of, sight)
            for j in range(whole.size):
                whole[j] += sight.type_scores[place, j]
        for j in range(whole.size):
            sight.columns[j] += whole[j]
        if cached:
            sight.item_epochs[component, role, item] = epoch
            for j in range(whole.size):
                sight.item_scores[component, role, item, j] = whole[j]


@dual
def decode(code, thresholds, columns, costs):
    """Turn column scores into one predicted cost per action: themselves, or SECOC's vote of thresholded subsets."""
    for a in range(costs.size):
        costs[a] = columns[a] if thresholds == 0 else np.float32(0.0)
    for subset in range(code.shape[0]):
        above = 0
        for h in range(thresholds):
            above += columns[subset * thresholds + h] > 0.0
        share = np.float32(above) / np.float32(thresholds)
        for a in range(costs.size):
            costs[a] += np.float32(1.0) - share if code[subset, a] > 0.0 else share


@dual
def score(space, x, s, legal, policy, component, cached, of, first_item, sight, epoch, where):
    """Predict the cost of every legal action from gathered features, into `sight.costs`."""
    columns = sight.columns
    for j in range(columns.size):
        columns[j] = 0.0
    if has(space, "items"):
        add_items(policy.shared, policy.stack, component, cached, of, first_item, sight, epoch)
    for k in range(sight.features.size[0]):
        sight.rows[k] = lookup(policy.shared, sight.features.ids[k])
    for k in range(sight.features.size[0]):
        if sight.rows[k] >= 0:
            add_row(columns, policy.stack, component, sight.rows[k], sight.features.values[k])
    decode(policy.code, policy.thresholds, columns, sight.costs)
    if has(space, "action_features"):
        out = sight.action_features
        for a in range(legal.size):
            if legal[a]:
                gather_action(space, x, s, a, out, where)
                for k in range(out.size[0]):
                    row = lookup(policy.single, out.ids[k])
                    if row >= 0:
                        sight.costs[a] += out.values[k] * policy.single_stack[component, row]


@dual
def cheapest(bits, legal, random_ties, stream):
    """The legal action of least predicted cost; ties go to the first, or to a random one; -1 if none is legal.

    `bits` are the costs read as integers, which can be put in the same order without branches (a cost is never -0.0,
    since sums start at 0.0): this loop is as hot as the scores themselves.
    """
    least = np.int32(2147483647)
    for a in range(legal.size):
        ordered = bits[a] ^ ((bits[a] >> np.int32(31)) & np.int32(2147483647))
        least = min(least, ordered if legal[a] else np.int32(2147483647))
    least = least ^ ((least >> np.int32(31)) & np.int32(2147483647))
    best, tied = -1, 0
    for a in range(legal.size):
        if legal[a] and bits[a] == least:
            if not random_ties:
                return np.int64(a)
            tied += 1
            if unit(mix(stream, a)) * tied < 1.0:
                best = a
    return np.int64(best)


@dual
def worst_violation(costs, predicted, margin):
    """The best-liked cheapest action, the worst violator, and by how much the margin between them is too small.

    A negative margin means one as wide as the difference in cost. Actions that were not evaluated cost infinity.
    """
    least = np.float32(np.inf)
    for a in range(costs.size):
        least = min(least, costs[a])
    good, bad, most = -1, -1, np.float32(-np.inf)
    for a in range(costs.size):
        if not np.isfinite(costs[a]):
            continue
        if costs[a] <= least:
            if good < 0 or predicted[a] < predicted[good]:
                good = a
        else:
            wanted = np.float32(margin) if margin >= 0.0 else costs[a] - least
            if bad < 0 or wanted - predicted[a] > most:
                bad, most = a, wanted - predicted[a]
    return good, bad, predicted[good] + most if bad >= 0 else np.float32(-np.inf)


@dual
def draw_component(chances, stream):
    """Draw a component of the learned policy by its cumulative chances."""
    last = chances.size - 1
    u = unit(stream)
    for c in range(last):
        if u < chances[c]:
            return c
    return last
