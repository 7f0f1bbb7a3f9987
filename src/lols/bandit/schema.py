"""What the weights of a bandit mean: the schema of its features and actions, and the settings that shape them.

A log belongs to a schema. It changes when `encode`, the features, or the states and actions that they are of say
something else; it does not change with comments, names of local variables, the version of Python, the loss or the
reference. What learning means is told by `LEARNING`, a number that is raised by hand.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from lols.bandit.settings import BAG, BanditSettings
from lols.contract.identity import LEARNING, identity_of
from lols.contract.space import SearchSpace

# Settings that may change on the way: how decisions are made, and how much losses count from now on. The others say
# what the learner keeps.
CHANGEABLE = ("epsilon", "beta", "width", "gap", "optimism", "pace", "randomise", "baseline", "patience", "seed")
OF_BAGS = ("exploration", "bag")  # so may these, unless there is a bag, whose members learn
SAID_BY = ("start", "actions", "step", "features", "action_features", "items", "survey", "encode")


def schema_of(space: SearchSpace) -> dict[str, Any]:
    """The schema of a space: its name, actions and settings, and what its functions say.

    >>> from lols.datasets.worlds import tagging_space
    >>> schema_of(tagging_space(labels=3))["space"]["actions"]
    3
    """
    functions = {name: getattr(space, name) for name in SAID_BY if getattr(space, name) is not None}
    return {
        "learning": LEARNING,
        "space": {
            "name": space.name,
            "actions": space.fixed_actions,
            "settings": {name: _plain(value) for name, value in sorted(space.settings.items())},
            "source": identity_of(functions),
        },
    }


def fixed(settings: BanditSettings) -> dict[str, Any]:
    """The settings that a log cannot be gone on without."""
    told = {name: value for name, value in asdict(settings).items() if name not in (*CHANGEABLE, *OF_BAGS)}
    return told | {"members": settings.bag if settings.exploration == BAG else 0}


def changeable(settings: BanditSettings) -> dict[str, Any]:
    """The settings that may change on the way."""
    names = CHANGEABLE if settings.exploration == BAG else (*CHANGEABLE, *OF_BAGS)
    return {name: value for name, value in asdict(settings).items() if name in names}


def _plain(value: Any) -> Any:
    """A setting of a space as a value of JSON."""
    return value.tolist() if hasattr(value, "tolist") else value
