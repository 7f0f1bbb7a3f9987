"""How a network is called: what it is given, in which precision, and what must come back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from lols.contract.examples import Examples
from lols.engine.states import States
from lols.errors import ConfigurationError, LolsError
from lols.torch.batches import ExampleBatch, Inputs, StateBatch, on_device
from lols.torch.losses import LOSSES, Loss
from lols.torch.replay import KeptLessons

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class NetworkCalls:
    """Calls of networks on a device; mistakes of theirs are told in one line."""

    def __init__(self, device: torch.device, precision: str):
        if precision not in PRECISIONS:
            raise ConfigurationError(f"unknown precision '{precision}': choose {' or '.join(PRECISIONS)}")
        self.device, self.precision = device, precision

    def encode(self, network: Any, batch: ExampleBatch) -> Any:
        """The memory of some examples; None if the network has none."""
        if not hasattr(network, "encode"):
            return None
        with self.computing(network):
            return network.encode(batch)

    def score(self, network: nn.Module, memory: Any, batch: StateBatch) -> torch.Tensor:
        """The scores of all actions in some states."""
        with self.computing(network):
            scores = network(memory, batch)
        name = type(network).__name__
        if not isinstance(scores, torch.Tensor) or scores.shape != (len(batch), batch.actions):
            shape = tuple(scores.shape) if isinstance(scores, torch.Tensor) else type(scores).__name__
            raise LolsError(
                f"`forward` of {name} gave {shape} for {len(batch)} states with {batch.actions} actions: it must give "
                f"a tensor of shape {(len(batch), batch.actions)}"
            )
        if scores.device.type != self.device.type:
            raise LolsError(f"`forward` of {name} gave scores on {scores.device}: keep them on `states.device`")
        return scores.float()

    def losses(
        self, network: Any, loss: str | Loss, examples: Examples, lessons: KeptLessons
    ) -> tuple[torch.Tensor, Any]:
        """The sum of the losses of states, and the network's own loss of their examples."""
        indices, rows = np.unique(lessons.example, return_inverse=True)
        batch = ExampleBatch(examples, indices, self.device)
        memory = self.encode(network, batch)
        states = StateBatch(rows, lessons.inputs, lessons.legal, self.device)
        scores = self.score(network, memory, states)
        known = np.isfinite(lessons.costs)
        costs = on_device(np.where(known, lessons.costs, 0.0).astype(np.float32), self.device)
        of_states = (LOSSES[loss] if isinstance(loss, str) else loss)(scores, costs, on_device(known, self.device))
        if not isinstance(of_states, torch.Tensor) or of_states.shape != (len(states),):
            shape = tuple(of_states.shape) if isinstance(of_states, torch.Tensor) else type(of_states).__name__
            raise LolsError(
                f"the function given as loss gave {shape} for {len(states)} states: it must give one loss for each"
            )
        total = (of_states * on_device(lessons.weights.astype(np.float32), self.device)).sum()
        own = None
        if batch.has_truth and hasattr(network, "own_loss"):
            with self.computing(network):
                own = network.own_loss(batch, memory)
        return total, own

    @staticmethod
    def inputs(network: nn.Module, states: States) -> Inputs:
        """What the network is given of states: by default their vectors, as far as roll-outs have them, then zeros."""
        own: Any = getattr(network, "inputs", None)
        if own is not None:
            made: Inputs = own(states)
            return made
        cells = states.examples.states[states.example]
        live = states.examples.space.sizes.live
        cells = cells if live is None else np.minimum(cells, live)
        return np.where(np.arange(states.vectors.shape[1]) < cells[:, np.newaxis], states.vectors, 0)

    @contextlib.contextmanager
    def computing(self, network: nn.Module) -> Iterator[None]:
        """Mixed precision if it is wanted, and a plain line about tensors on two devices."""
        lower = self.precision != "float32"
        try:
            with torch.autocast(self.device.type, PRECISIONS[self.precision]) if lower else contextlib.nullcontext():
                yield
        except RuntimeError as error:
            if not any(words in str(error) for words in ("same device", "expected device")):
                raise
            raise LolsError(
                f"{type(network).__name__} mixes tensors of two devices: create them with device=states.device"
            ) from error


def chosen_device(device: str | torch.device) -> torch.device:
    """The device that is meant; `"auto"` is a GPU if there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        made = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ConfigurationError(f"unknown device {device!r}: give auto, cpu or cuda") from error
    if made.type == "cuda" and not torch.cuda.is_available():
        raise ConfigurationError("there is no GPU that PyTorch can use: give device='cpu', or install drivers for it")
    return made
