"""Networks of the user's for sentences: how they are made, and what they must have; mistakes are told in one line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from lols.errors import ConfigurationError
from lols.torch.sentences import NetworkSizes, WordEncoder


def made_by(make: Any, arguments: Mapping[str, Any]) -> Any:
    """The network that a class or a function of the user's makes of what the built-in one would be made of.

    Without a method `inputs`, it is given `positions` of states: all that their future depends on.
    """
    name = getattr(make, "__name__", type(make).__name__)
    if isinstance(make, nn.Module):
        raise ConfigurationError(
            f"network is an object of {name}: give the class, or a function that makes one, because words and labels "
            "are known in training only"
        )
    _check_call(make, name, arguments)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(arguments["seed"])
        made = make(**arguments)
    if not isinstance(made, nn.Module):
        raise ConfigurationError(f"network={name} made {type(made).__name__}: it must make a torch.nn.Module")
    sizes: NetworkSizes = arguments["sizes"]
    wanted = [each for each in ("vectors", "encoder") if getattr(sizes, each) is not None]
    if wanted and not isinstance(getattr(made, "encoder", None), WordEncoder):
        raise ConfigurationError(
            f"{wanted[0]} has no effect: {name} has no `encoder`, a lols.torch.sentences.WordEncoder(sizes, folder); "
            "leave it out"
        )
    if not hasattr(made, "inputs"):
        made.inputs = arguments["positions"]
    return made


def check_method(network: nn.Module, method: str, why: str) -> None:
    """Raise an error if a network lacks a method."""
    if not callable(getattr(network, method.partition("(")[0], None)):
        raise ConfigurationError(f"{type(network).__name__} has no method {method}: {why}")


def _check_call(make: Callable[..., Any], name: str, arguments: Mapping[str, Any]) -> None:
    try:
        inspect.signature(make).bind(**arguments)
    except TypeError as error:
        raise ConfigurationError(
            f"network={name} cannot be called with {', '.join(arguments)} as keyword arguments ({error}): end those "
            "that it needs with **others"
        ) from None
