"""What a learner goes on from, as a file has it: compared with the network before PyTorch trusts it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from lols.errors import LolsError

MOST_UPDATES = 1 << 40
MOST_STEPS = 10_000_000  # that a schedule is advanced one by one
SQUARES = ("exp_avg_sq", "max_exp_avg_sq", "square_avg", "acc_delta", "sum", "exp_inf")  # their roots are taken

Moments = Mapping[str, Any]


def counted(state: Mapping[str, np.ndarray]) -> tuple[int, int]:
    """How many updates and steps of the optimiser there were."""
    counts = state["counts"]
    if counts.shape != (2,) or counts.dtype != np.int64:
        raise LolsError(f"'counts' has shape {counts.shape} of {counts.dtype}, not two of int64")
    updates, steps = (int(n) for n in counts)
    if not (0 <= updates <= MOST_UPDATES and 0 <= steps <= MOST_UPDATES):
        raise LolsError(f"'counts' says that there were {updates} updates and {steps} steps")
    return updates, steps


def advance(schedule: Any, optimizer: torch.optim.Optimizer, steps: int) -> None:
    """Step a new schedule as often as it was stepped."""
    optimizer.step()  # without gradients, it changes nothing
    if type(schedule) is LambdaLR and steps > 1:  # whose rates depend on nothing but the number of the step
        schedule.last_epoch = steps - 1
        schedule.step()
        return
    if steps > MOST_STEPS:
        raise LolsError(f"'counts' says {steps} steps, and a schedule is advanced by at most {MOST_STEPS:,}")
    for _ in range(steps):
        schedule.step()


def check_moments(
    held: Mapping[str, Moments],
    network: nn.Module,
    optimizer_of: Callable[[nn.Module], torch.optim.Optimizer],
    steps: int,
) -> None:
    """Raise an error if what an optimiser held, by the number of the parameter, is not what one of this network holds.

    What that is, a step of a twin without memory says; if there can be none, numbers of the parameters' shapes it is.
    """
    parameters, wanted = _after_a_step(network, optimizer_of)
    if steps and not held and any(wanted.values() if wanted else ()):
        raise LolsError("there is nothing under 'optimizer', which has taken steps")
    for k, moments in held.items():
        if k not in parameters:
            raise LolsError(f"'optimizer.{k}' is of no parameter: there are {len(parameters)}")
        expected = None if wanted is None else wanted.get(k, {})
        for name in sorted({*(expected or ())} - {*moments}):
            raise LolsError(f"'optimizer.{k}' has no '{name}'")
        for name, value in moments.items():
            _check_moment(f"'optimizer.{k}.{name}'", name, value, parameters[k], expected, steps)


def _check_moment(
    what: str, name: str, value: torch.Tensor, parameter: torch.Tensor, expected: Moments | None, steps: int
) -> None:
    """Raise an error if a moment is not what is expected; None is expected if that is not known."""
    if expected is not None and name not in expected:
        raise LolsError(f"{what} is nothing that this optimiser holds")
    if expected is None:
        shapes, dtypes = [parameter.shape, torch.Size()], [_stored(parameter.dtype), torch.float32, torch.int64]
    else:
        like = torch.as_tensor(expected[name])
        shapes, dtypes = [like.shape], [_stored(like.dtype)]
    if value.shape not in shapes or value.dtype not in dtypes:
        raise LolsError(
            f"{what} has shape {tuple(value.shape)} of {_plain(value.dtype)}, and this optimiser has "
            f"{tuple(shapes[0])} of {_plain(dtypes[0])}: train with the settings of before"
        )
    if not value.ndim and name == "step" and not (0 <= value.item() <= steps and float(value) == int(value)):
        raise LolsError(f"{what} is {value.item():g}, and there were {steps} steps")
    if name in SQUARES and bool((value < 0).any()):
        raise LolsError(f"{what} has numbers below 0")


def _after_a_step(
    network: nn.Module, optimizer_of: Callable[[nn.Module], torch.optim.Optimizer]
) -> tuple[dict[str, torch.Tensor], dict[str, Moments] | None]:
    """The parameters of an optimiser by number, and what it holds of each after a step; None if that is not known."""
    optimizer = None
    try:
        twin = _without_memory(network)
        optimizer = optimizer_of(twin)
        found = _numbered(optimizer)
        for parameter in found.values():
            parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
        state = optimizer.state_dict()["state"]
        return found, {str(k): moments for k, moments in state.items()}
    except Exception:  # this one needs real numbers
        return _numbered(optimizer_of(network)), None


def _numbered(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    return {str(k): p for k, p in enumerate(parameters)}


def _without_memory(network: nn.Module) -> nn.Module:
    """A copy of a network whose numbers take no memory and have no values."""
    memo: dict[int, Any] = {}
    for parameter in network.parameters():
        memo[id(parameter)] = nn.Parameter(torch.empty_like(parameter, device="meta"), parameter.requires_grad)
    for buffer in network.buffers():
        memo[id(buffer)] = torch.empty_like(buffer, device="meta")
    return copy.deepcopy(network, memo)


def _stored(dtype: torch.dtype) -> torch.dtype:
    """The type that numbers have in a file."""
    return torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype


def _plain(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
