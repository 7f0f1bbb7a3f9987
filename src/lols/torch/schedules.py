"""A schedule of learning rates, made of PyTorch's own."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch.optim.lr_scheduler import LambdaLR

LEAST = 0.02  # the share of the rate that is left in the end


def share_of_rate(step: int, total: int, warm_up: int) -> float:
    """The share of the rate at a step: it rises to 1, and falls linearly to a small rest.

    >>> [round(share_of_rate(step, 1000, 200), 3) for step in (0, 99, 199, 600, 2000)]
    [0.005, 0.451, 0.801, 0.4, 0.02]
    """
    return min(1.0, (step + 1) / max(warm_up, 1)) * max(LEAST, 1.0 - step / max(total, 1))


def warm_up_and_decay(total: int, warm_up: int = 200) -> Any:
    """A schedule for `TorchPolicy`: rates rise in the first steps, and then fall until step `total`.

    The warm-up takes at most a fifth of all steps. `TorchPolicy(..., schedule=warm_up_and_decay(total=4000))`.

    Parameters
    ----------
    total
        How many steps there will be.
    warm_up
        In how many of them rates rise; at most a fifth of all.

    """
    return partial(LambdaLR, lr_lambda=partial(share_of_rate, total=total, warm_up=min(warm_up, total // 5)))


def adam(rate: float) -> Any:
    """Adam for `TorchPolicy`, with the second moments that suit encoders of sentences (Dozat & Manning 2017)."""
    return partial(_adam, lr=rate, betas=(0.9, 0.9))


def _adam(parameters: Any, **options: Any) -> torch.optim.Adam:
    """Adam, in one kernel where PyTorch has one."""
    parameters = list(parameters)
    first = parameters[0]["params"][0] if isinstance(parameters[0], dict) else parameters[0]
    return torch.optim.Adam(parameters, fused=first.device.type in ("cpu", "cuda") or None, **options)
