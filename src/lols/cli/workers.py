"""The options of a command that say who does the work."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from lols.errors import ConfigurationError
from lols.tasks.options import option, values_of

MACHINES = "More processes and machines"


@dataclasses.dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Who does the work: this process, others on this machine, or those of a Ray cluster."""

    engine: str | None = option(
        default=None,
        help="Who does the work: this process unless given; processes, of this machine; or ray, on a cluster or a "
        "local Ray.",
        panel=MACHINES,
    )
    workers: int | None = option(
        default=None,
        help="How many workers; by default one for each core, or as many as a cluster has.",
        panel=MACHINES,
    )
    address: str | None = option(
        default=None,
        help="The Ray cluster: auto, HOST:PORT or ray://HOST:PORT. Without it a local Ray is started and stopped.",
        panel=MACHINES,
    )
    sync: str | None = option(
        default=None,
        help="In training: exact, where workers do not change the result; or pass, where shards of the data train "
        "learners of their own, which are averaged several times in a pass (--legs).",
        panel=MACHINES,
    )
    shards: int | None = option(
        default=None, help="With sync pass: into how many shards the data are cut; one for each worker.", panel=MACHINES
    )
    legs: int | None = option(
        default=None,
        help="With sync pass: how often weights are averaged in a pass, eight times as often in the first one; by "
        "default half as often as there are shards, at most 4 times, and 32 times in the first pass.",
        panel=MACHINES,
    )


def engine_of(typed: Mapping[str, Any]) -> Any:
    """The engine that was typed on a command line; None if none was.

    >>> engine_of({"engine": "processes", "workers": 2})
    Processes(sync='exact', shards=None, legs=None, workers=2)
    >>> engine_of({"workers": 2})
    Traceback (most recent call last):
        ...
    lols.errors.ConfigurationError: --workers has no effect without --engine: choose processes or ray
    """
    from lols.engines import ENGINES, as_engine

    values = values_of(EngineOptions, typed)
    name = values.pop("engine", None)
    if name is None:
        if values:
            raise ConfigurationError(f"--{min(values)} has no effect without --engine: choose processes or ray")
        return None
    as_engine(name)
    known = {each.name for each in dataclasses.fields(ENGINES[name])}
    unknown = sorted(set(values) - known)
    if unknown:
        raise ConfigurationError(f"--{unknown[0]} has no effect with --engine {name}; leave it out")
    return ENGINES[name](**values)
