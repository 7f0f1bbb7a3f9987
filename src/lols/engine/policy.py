"""The learned policy π̂: from a state to features Φ(x, s), to predicted costs, to an action.

Scores are sums of rows of weights, always in the same order: items first, each in its role, then the state's own
features. The score of an item is computed once per example, that of a type of item once per policy.
"""

from __future__ import annotations

import numpy as np

from lols.contract.features import PLACES
from lols.engine.calls import action_features, features_of, items, survey
from lols.engine.ordering import MOST_32, SIGN_32, ordered
from lols.engine.structures import (
    AT_ACTION,
    BAD_ACTION_FEATURE,
    BAD_FEATURE,
    CODE,
    NO_SUCH_ITEM,
    TOO_MANY_FEATURES,
    TOO_MANY_ITEMS,
)
from lols.engine.table import lookup
from lols.kernels.dual import dual, has, needs, not_inlined
from lols.kernels.hashing import mix, unit

# --- features ---------------------------------------------------------------------------------------------------------


@dual
def gather(search, here, s, legal):
    """Survey a state, and call the space's `features` and `items` into the buffers."""
    view, report = search.scratch.seen, search.scratch.report
    own = view.features
    own.size[0] = 0
    survey(search.space, here.x, s, legal)
    features_of(search.space, here.x, s, own)
    if own.size[0] > own.ids.size:
        report_overflow(report, own, BAD_FEATURE)
    if has(search.space, "items"):
        gather_items(search, here, s)


@dual
def report_overflow(report, buffer, refused):
    """Report more features than there is room for, or a value that `emit` has refused."""
    place = buffer.size[0] >> PLACES
    report[CODE], report[AT_ACTION] = (refused, place) if place > 0 else (TOO_MANY_FEATURES, -1)
    buffer.size[0] = 0


@needs("space", "items")
def gather_items(search, here, s):
    """Call the space's `items` into the buffer."""
    view, report = search.scratch.seen, search.scratch.report
    looked = view.items
    looked.size[0] = 0
    items(search.space, here.x, s, looked)
    if looked.size[0] > looked.items.size:
        report[CODE] = TOO_MANY_ITEMS
        looked.size[0] = looked.items.size
    for n in range(looked.size[0]):
        item, role = looked.items[n], looked.roles[n]
        if item < 0 or item >= here.item_count or role < 0 or role >= view.item_scores.shape[1]:
            report[CODE], report[AT_ACTION] = NO_SUCH_ITEM, item
            looked.size[0] = n
            break


@needs("space", "action_features")
def gather_action(search, here, s, a):
    """Call the space's `action_features` into a buffer."""
    out = search.scratch.seen.action_features
    out.size[0] = 0
    action_features(search.space, here.x, s, a, out)
    if out.size[0] > out.ids.size:
        report_overflow(search.scratch.report, out, BAD_ACTION_FEATURE)


@dual
def types_of(of, item):
    """Begin and end of an item's types."""
    if of.bounds.size > 0:
        return of.bounds[item], of.bounds[item + 1]
    return item * of.parts, (item + 1) * of.parts


@dual
def in_role(identity, role):
    """The id of an item's feature in a role; role 0 keeps the id."""
    return identity if role == 0 else mix(identity, role)


# --- scores -----------------------------------------------------------------------------------------------------------


@dual
def add_features(policy, component, features, first, last, role, rows, columns):
    """Add the weights of features `first` to `last`, in a role, to the scores of all columns."""
    ids, values, stack = features.ids, features.values, policy.stack
    # All look-ups come first, so that their cache misses overlap.
    for k in range(first, last):
        rows[k - first] = lookup(policy.shared, in_role(ids[k], role))
    for k in range(first, last):
        place = rows[k - first]
        if place >= 0:
            value = values[k]
            for j in range(columns.size):
                columns[j] += value * stack[component, place, j]


@dual
def single_score(policy, component, ids, values, first, last, total):
    """A total plus the weights of an action's own features `first` to `last`."""
    for k in range(first, last):
        place = lookup(policy.single, ids[k])
        if place >= 0:
            total += values[k] * policy.single_stack[component, place]
    return total


@dual
def new_policy(view):
    """Discard the scores of types: the policy has changed."""
    view.type_clock[0] += view.type_scores.shape[0] - 1
    view.type_clock[1] = 0


@not_inlined
@dual
def new_type_place(search, component, role, kind, cached):
    """Compute the score of a type of item in a role; its place. Not inlined: most scores are computed already."""
    of, view = search.items, search.scratch.seen
    part, scores, clock = view.part, view.type_scores, view.type_clock
    places = scores.shape[0] - 1
    place = places  # the last one is for scores that are not kept
    if cached and kind < of.lasting:
        if clock[1] == places:
            new_policy(view)
        place = clock[1]
        clock[1] += 1
        view.type_places[component, role, kind] = clock[0] + place
    for j in range(part.size):
        part[j] = 0.0
    add_features(search.policy, component, of, of.start[kind], of.start[kind + 1], role, view.rows, part)
    for j in range(part.size):
        scores[place, j] = part[j]
    return place


@needs("space", "items")
def add_items(search, here, component, columns):
    """Add the scores of the items, each in its role; computed once per example if the plan says so."""
    of, view, cached, epoch = search.items, search.scratch.seen, search.plan.cache_items, search.scratch.epoch[0]
    scores, whole, type_scores, types = view.item_scores, view.whole, view.type_scores, of.types
    places, clock, lasting = type_scores.shape[0] - 1, view.type_clock, of.lasting if cached else 0
    for n in range(view.items.size[0]):
        item, role = view.items.items[n], view.items.roles[n]
        if cached and view.item_epochs[component, role, item] == epoch:
            for j in range(columns.size):
                columns[j] += scores[component, role, item, j]
            continue
        for j in range(whole.size):
            whole[j] = 0.0
        low, high = types_of(of, here.first_item + item)
        written = view.type_places[component, role]
        for k in range(low, high):
            place = written[types[k]] - clock[0] if types[k] < lasting else -1
            if place < 0 or place >= places:
                place = new_type_place(search, component, role, types[k], cached)
            for j in range(whole.size):
                whole[j] += type_scores[place, j]
        for j in range(whole.size):
            columns[j] += whole[j]
        if cached:
            view.item_epochs[component, role, item] = epoch
            for j in range(whole.size):
                scores[component, role, item, j] = whole[j]


@dual
def decode(policy, columns, costs):
    """Turn column scores into one predicted cost per action: the scores, or the vote of SECOC's subsets."""
    code, thresholds = policy.code, policy.thresholds
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
def score(search, here, s, legal, component):
    """Predict the cost of every legal action from the gathered features, into `view.costs`."""
    policy, view = search.policy, search.scratch.seen
    columns, costs = view.columns, view.costs
    for j in range(columns.size):
        columns[j] = 0.0
    if has(search.space, "items"):
        add_items(search, here, component, columns)
    add_features(policy, component, view.features, 0, view.features.size[0], 0, view.rows, columns)
    decode(policy, columns, costs)
    if has(search.space, "action_features"):
        add_actions(search, here, s, legal, component, costs)


@needs("space", "action_features")
def add_actions(search, here, s, legal, component, costs):
    """Add the scores of the actions' own features."""
    own = search.scratch.seen.action_features
    for a in range(legal.size):
        if legal[a]:
            gather_action(search, here, s, a)
            costs[a] = single_score(search.policy, component, own.ids, own.values, 0, own.size[0], costs[a])


@dual
def score_lesson(policy, component, slots, slot, rows, columns, costs):
    """Predict the cost of every action from the features of a lesson; `rows` has room for them."""
    for j in range(columns.size):
        columns[j] = 0.0
    add_features(policy, component, slots, slots.start[slot], slots.stop[slot], 0, rows, columns)
    decode(policy, columns, costs)
    if slots.action_start.shape[0] > 0:
        for a in range(costs.size):
            low, high = slots.action_start[slot, a], slots.action_stop[slot, a]
            costs[a] = single_score(policy, component, slots.action_ids, slots.action_values, low, high, costs[a])


# --- actions ----------------------------------------------------------------------------------------------------------


@dual
def cheapest(bits, legal, random_ties, stream):
    """The legal action of least predicted cost; ties go to the first, or to a random one; -1 if none is legal.

    `bits` are the bits of the costs, compared as integers: this loop is as hot as the scores themselves. A cost is
    never -0.0, because sums start at 0.0.
    """
    least = MOST_32
    for a in range(legal.size):
        least = min(least, ordered(bits[a], SIGN_32, MOST_32) if legal[a] else MOST_32)
    least = ordered(least, SIGN_32, MOST_32)
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
def draw_component(chances, stream):
    """Draw a component of the learned policy from the cumulative probabilities."""
    last = chances.size - 1
    u = unit(stream)
    for c in range(last):
        if u < chances[c]:
            return c
    return last
