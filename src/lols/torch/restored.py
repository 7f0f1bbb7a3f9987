"""What a learner goes on from, as a file has it, compared with the network before PyTorch trusts it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
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


def moments_of(
    held: Mapping[str, Mapping[str, torch.Tensor]], optimizer: torch.optim.Optimizer, steps: int
) -> dict[int, dict[str, Any]]:
    """What an optimiser held, by the number of the parameter; an error if this new one would hold something else.

    A step says what it would hold, because fused kernels trust the shapes of their moments. The parameters stay as they
    are.
    """
    made: dict[int, dict[str, Any]] = {}
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    wanted = _after_a_step(optimizer, parameters)
    for k, moments in held.items():
        if not k.isdecimal() or str(int(k)) != k or int(k) >= len(parameters):
            raise LolsError(f"'optimizer.{k}' is of no parameter: there are {len(parameters)}")
        expected = None if wanted is None else wanted.get(int(k), {})
        for name in sorted({*(expected or ())} - {*moments}):
            raise LolsError(f"'optimizer.{k}' has no '{name}'")
        own = made[int(k)] = {}
        for name, value in moments.items():
            what = f"'optimizer.{k}.{name}'"
            if expected is None:
                _check_like(what, value, [parameters[int(k)], torch.tensor(0.0), torch.tensor(0)])
            elif name in expected:
                _check_like(what, value, [torch.as_tensor(expected[name])])
            else:
                raise LolsError(f"{what} is nothing that this optimiser holds")
            if name == "step" and not value.ndim and not (0 <= value.item() <= steps and value.item() % 1 == 0):
                raise LolsError(f"{what} is {value.item():g}, and there were {steps} steps")
            if name in SQUARES and bool((value < 0).any()):
                raise LolsError(f"{what} has numbers below 0")
            number = expected is not None and not isinstance(expected[name], torch.Tensor)
            own[name] = value.item() if number else value
    return made


def _after_a_step(optimizer: torch.optim.Optimizer, parameters: Sequence[torch.Tensor]) -> Mapping[int, Moments] | None:
    """What an optimiser holds of each parameter after a step; None if it cannot take one with these gradients."""
    before = [p.detach().clone() for p in parameters]
    try:
        for layout in (torch.strided, torch.sparse_coo):
            for p in parameters:
                p.grad = torch.zeros_like(p, layout=layout) if p.requires_grad else None
            with contextlib.suppress(RuntimeError, NotImplementedError):  # it wants the other kind
                optimizer.step()
                found: Mapping[int, Moments] = optimizer.state_dict()["state"]
                return found
        return None
    finally:
        with torch.no_grad():
            for p, old in zip(parameters, before, strict=True):
                p.copy_(old)
                p.grad = None


def _check_like(what: str, value: torch.Tensor, allowed: Sequence[torch.Tensor]) -> None:
    """Raise an error if a tensor from a file has not the shape and the type of one of these."""
    if not any(value.shape == like.shape and value.dtype == _stored(like.dtype) for like in allowed):
        like = allowed[0]
        raise LolsError(
            f"{what} has shape {tuple(value.shape)} of {_plain(value.dtype)}, and this optimiser has "
            f"{tuple(like.shape)} of {_plain(_stored(like.dtype))}: train with the settings of before"
        )


def _stored(dtype: torch.dtype) -> torch.dtype:
    """The type that numbers have in a file."""
    return torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype


def _plain(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
