"""The functions of a search space and of a reference, as kernels and plain Python call them."""

from __future__ import annotations

from lols.contract.space import SearchSpace
from lols.kernels.dual import Bound, bind, call_of, shortened_call_of

start = call_of("start")
actions = call_of("actions")
step = call_of("step")
features_of = call_of("features")
loss = call_of("loss", 0.0)
action_features = call_of("action_features")
cost = call_of("cost", 0.0)
key = call_of("key", 0)
items = call_of("items")
survey = call_of("survey")
free = call_of("free")
reference_costs = call_of("costs")
names_action = call_of("named", True)
reference_action = shortened_call_of("action", -1)  # with or without a random stream


def bind_space(space: SearchSpace) -> Bound:
    """The functions of a space, for kernels."""
    return bind("Space", space.functions(), f"the search space {space.name}")
