"""Policies of the user in model files: their arrays by name, and the name of their class."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from lols.errors import ConfigurationError, LolsError, ModelFileError, shown
from lols.policies.protocol import checked


def kind_of(policy: Any) -> str:
    """The import path of a policy's class."""
    return f"{type(policy).__module__}:{type(policy).__qualname__}"


def check_saved(policy: Any, what: str) -> None:
    """Raise an error if a policy has no arrays to be written, which `what` needs."""
    for name in ("state", "load"):
        if not callable(getattr(policy, name, None)):
            raise ConfigurationError(
                f"{what} needs the policy's arrays: give {type(policy).__name__} a method `{name}`"
            )


def state_of(policy: Any) -> dict[str, np.ndarray]:
    """A policy's arrays."""
    check_saved(policy, "a model file")
    state, whose = policy.state(), f"`state` of {type(policy).__name__}"
    if not isinstance(state, Mapping) or not all(isinstance(name, str) for name in state):
        raise ConfigurationError(f"{whose} gave {type(state).__name__}: give a dictionary of arrays, with names")
    for name, array in state.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "iufb":
            raise ConfigurationError(f"{whose} has a {type(array).__name__} under '{name}': give arrays of numbers")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ConfigurationError(f"{whose} has NaN or infinity under '{name}': has it diverged?")
    return dict(state)


def filled(path: str | os.PathLike[str], kind: Any, tensors: Mapping[str, np.ndarray], policy: Any) -> Any:
    """The policy with the arrays of a file, which belong to class `kind`; None stands for a linear policy."""
    if kind is None:
        raise ModelFileError(f"{path}: holds a linear policy: load it without policy")
    if not isinstance(kind, str):
        raise ModelFileError(f"{path}: the header is damaged (the policy is {shown(kind)}, not the name of a class)")
    if policy is None:
        raise ModelFileError(f"{path}: holds a policy of class {kind}: give load(..., policy=...) an object of it")
    check_saved(checked(policy), "a model file")
    if kind_of(policy).rpartition(":")[2] != kind.rpartition(":")[2]:
        raise ModelFileError(f"{path}: holds a policy of class {kind}, not {kind_of(policy)}")
    state = {k.removeprefix("policy."): v for k, v in tensors.items() if k.startswith("policy.")}
    try:
        policy.load(state)
    except LolsError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ModelFileError(
            f"{path}: `load` of {kind} failed with {reason}; was it made with other settings?"
        ) from error
    return policy
