"""How a network learns from lessons: minibatches of whole examples, optimiser, schedule, average, replay."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from lols.contract.whole_numbers import check_seed, check_whole
from lols.errors import ConfigurationError, LolsError, one_line
from lols.kernels.hashing import mix
from lols.torch.losses import LOSSES, Loss
from lols.torch.replay import KeptLessons, ReplayBuffer
from lols.torch.restored import advance, counted, moments_of

SINGLE = ".single"
Optimizer = Callable[[Any], torch.optim.Optimizer]
Schedule = Callable[[torch.optim.Optimizer], Any]


@dataclass(frozen=True, kw_only=True)
class LearningSettings:
    """The options of a `TorchPolicy` that concern learning."""

    loss: str | Loss = "log"
    optimizer: Optimizer | None = None
    schedule: Schedule | None = None
    steps: int = 1
    accumulate: int = 1
    replay: int = 0
    replay_decay: float = 1.0
    average: float | None = None
    clip: float | None = 5.0
    alike: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.loss, str) and self.loss not in LOSSES:
            raise ConfigurationError(f"unknown loss '{self.loss}': choose {', '.join(LOSSES)}, or give a function")
        for name, made, example in (
            ("optimizer", torch.optim.Optimizer, "functools.partial(torch.optim.Adam, lr=0.001)"),
            ("schedule", torch.optim.lr_scheduler.LRScheduler, "lambda o: torch.optim.lr_scheduler.StepLR(o, 1000)"),
        ):
            given = getattr(self, name)
            if isinstance(given, made) or (given is not None and not callable(given)):
                raise ConfigurationError(f"{name} is {type(given).__name__}: give a function that makes it: {example}")
        for name in ("steps", "accumulate"):
            check_whole(name, getattr(self, name))
        check_whole("replay", self.replay, least=0)
        check_seed(self.seed)
        if self.average is not None and not 0.0 < self.average < 1.0:
            raise ConfigurationError(f"average is {self.average}: give a decay between 0 and 1, such as 0.999")
        if self.clip is not None and not self.clip > 0.0:
            raise ConfigurationError(f"clip is {self.clip}: give the largest norm of gradients, or None")
        if not 0.0 < self.replay_decay <= 1.0:
            raise ConfigurationError(f"replay_decay is {self.replay_decay}: give a number above 0, at most 1")
        if self.replay == 0 and self.replay_decay != 1.0:
            raise ConfigurationError("replay_decay has no effect: replay keeps no batches; leave it out")


class NetworkLearner:
    """Optimiser, schedule, average and replay buffer of a network."""

    def __init__(self, network: nn.Module, settings: LearningSettings):
        self.network, self.settings = network, settings
        self.updates = self.steps = self.averaged = 0
        self._losses: list[torch.Tensor] = []  # that are still to be checked
        self.replay = ReplayBuffer(settings.replay, settings.replay_decay)
        self.average: AveragedModel | None = None
        if settings.average is not None:
            self.average = AveragedModel(network)
        self._begin()

    def _begin(self) -> None:
        """A new optimiser and a new schedule."""
        if not any(p.requires_grad for p in self.network.parameters()):
            raise ConfigurationError(f"{type(self.network).__name__} has no parameters that can be trained")
        self.optimizer = self._new_optimizer()
        self.schedule = None if self.settings.schedule is None else self.settings.schedule(self.optimizer)

    def _new_optimizer(self) -> torch.optim.Optimizer:
        make = self.settings.optimizer or partial(torch.optim.Adam, lr=1e-3)
        groups: Any = getattr(self.network, "parameter_groups", None)
        return make([p for p in self.network.parameters() if p.requires_grad] if groups is None else groups())

    def learn(self, lessons: KeptLessons, losses: Callable[[KeptLessons], tuple[torch.Tensor, Any]]) -> None:
        """Take the optimiser's steps for a batch of lessons.

        `losses` gives, for some lessons, the sum of the losses of their states and a further loss of their examples.
        """
        random = np.random.default_rng(self.seed())

        def step_by_step() -> None:
            for part in self._minibatches(lessons, random):
                self._step(part, losses)

        self.replay.check_like(lessons)
        try:
            with_dropout(self.network, self.seed(), step_by_step)
        except (IndexError, RuntimeError, ValueError) as error:
            if not self.replay.restored or isinstance(error, LolsError):
                raise
            raise LolsError(
                f"the lessons under 'replay' of the file cannot be learned from ({one_line(error)}): train anew"
            ) from error
        self._check_losses()
        self.replay.add(lessons)
        self.updates += 1

    def seed(self, later: int = 0) -> int:
        """The seed of the next batch, or of one that comes so many batches later."""
        return int(mix(self.settings.seed, self.updates + later) & (2**63 - 1))

    def _minibatches(self, lessons: KeptLessons, random: np.random.Generator) -> Iterator[KeptLessons]:
        """The lessons in as many parts as there are steps, each joined by as many examples of earlier batches."""
        bounds = lessons.rounds()
        rounds = random.permutation(bounds.size - 1)
        steps = min(self.settings.steps, rounds.size)
        if self.settings.alike:
            parts = by_length(rounds, np.diff(bounds)[rounds], steps)
            parts = [parts[k] for k in random.permutation(len(parts))]
        else:
            parts = np.array_split(rounds, steps)
        for part in parts:
            new = lessons.select(np.sort(part))
            yield KeptLessons.joined([new, *self.replay.draw(part.size, random)])

    def _step(self, lessons: KeptLessons, losses: Callable[[KeptLessons], tuple[torch.Tensor, Any]]) -> None:
        """One step of the optimiser; the gradients of several parts add up."""
        rounds = np.arange(lessons.rounds().size - 1)
        pieces = min(self.settings.accumulate, rounds.size)
        whole = max(float(lessons.weights.sum()), 1e-12)
        self.network.zero_grad(
            set_to_none=True
        )  # also of parameters in no group, which count when gradients are clipped
        for part in np.array_split(rounds, pieces):
            piece = lessons.select(part) if pieces > 1 else lessons
            of_states, of_examples = losses(piece)
            loss = of_states / whole
            if of_examples is not None:
                loss = loss + of_examples * (part.size / rounds.size)
            if not loss.requires_grad:
                raise LolsError(
                    f"the loss of {type(self.network).__name__} has no gradient: compute scores without no_grad, "
                    "detach and argmax"
                )
            self._losses.append(loss.detach())
            if not loss.is_cuda:
                self._check_losses()
            loss.backward()
        if self.settings.clip is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.clip)
        self.optimizer.step()
        if self.schedule is not None:
            self.schedule.step()
        if self.average is not None and self.settings.average is not None:
            move_average(self.average, self.network, self.averaged, self.settings.average)
            self.averaged += 1
        self.steps += 1

    def _check_losses(self) -> None:
        """Raise an error if losses are not finite; a GPU is asked once for all steps, to work without a pause."""
        if not self._losses:
            return
        loss = torch.stack(self._losses).sum()
        self._losses.clear()
        if not bool(torch.isfinite(loss)):
            raise LolsError(
                f"the loss of {type(self.network).__name__} is {loss.item()} after {self.steps:,} steps: lower the "
                "learning rate, or clip gradients more (clip=1.0)"
            )

    def begin_with(self, other: NetworkLearner) -> None:
        """Go on where the learner of a smaller network is; what is new has seen no gradients yet."""
        self.updates, self.steps = other.updates, other.steps
        held = other.optimizer.state_dict()["state"]
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        old = [p for group in other.optimizer.param_groups for p in group["params"]]
        for k, parts in held.items():
            for name, value in parts.items():
                if isinstance(value, torch.Tensor) and value.shape == old[k].shape:
                    parts[name] = padded_to(parameters[k].shape, value)
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": held})
        if self.average is not None and other.average is not None:
            grow_into(self.average, other.average)
            self.averaged = other.averaged

    # --- files ---

    def state(self) -> dict[str, np.ndarray]:
        """Everything beside the weights that learning goes on from, as named arrays."""
        arrays = {"counts": np.array([self.updates, self.steps], np.int64)}
        for k, held in self.optimizer.state_dict()["state"].items():
            arrays |= named_arrays(f"optimizer.{k}.", held)
        if self.average is not None:
            arrays |= named_arrays("average.", self.average.state_dict())
        return arrays | {f"replay.{name}": array for name, array in self.replay.arrays().items()}

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore such a state, if it is one. The schedule is stepped as often as it was then."""
        updates, steps = counted(state)
        held: dict[str, dict[str, torch.Tensor]] = {}
        for name, array in arrays_named("optimizer.", state).items():
            k, _, part = name.partition(".")
            held.setdefault(k, {})[part] = torch.from_numpy(array)
        moments = moments_of(held, self._new_optimizer(), steps)
        self._begin()
        if self.schedule is not None:
            advance(self.schedule, self.optimizer, steps)
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
        if self.average is not None:
            loaded_into(self.average, arrays_named("average.", state))
            self.averaged = int(self.average.n_averaged)
            if not 0 <= self.averaged <= steps:
                raise LolsError(f"'average.n_averaged' is {self.averaged}, and there were {steps} steps")
        self.replay.load({n.removeprefix("replay."): a for n, a in state.items() if n.startswith("replay.")})
        self.updates, self.steps = updates, steps


def with_dropout(network: nn.Module, seed: int, work: Callable[[], Any]) -> Any:
    """What `work` gives while the network is in training mode; the seed determines its dropout."""
    device = next(network.parameters()).device
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else []), few_threads(on_gpu):
        torch.manual_seed(seed)
        network.train()
        try:
            return work()
        finally:
            network.eval()


@contextlib.contextmanager
def few_threads(wanted: bool) -> Iterator[None]:
    """One thread of PyTorch on the CPU, if wanted: those that only start work on a GPU wait for each other."""
    threads = torch.get_num_threads()
    try:
        if wanted:
            torch.set_num_threads(1)
        yield
    finally:
        if wanted:
            torch.set_num_threads(threads)


def by_length(rounds: np.ndarray, lengths: np.ndarray, parts: int) -> list[np.ndarray]:
    """Examples in parts of about the same number of states, the short ones together and the long ones together.

    >>> [part.tolist() for part in by_length(np.arange(5), np.array([9, 2, 8, 3, 4]), 3)]
    [[1, 3], [4, 2], [0]]
    """
    order = np.argsort(lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    numbers = np.arange(1, parts)
    cuts = np.searchsorted(ends, ends[-1] * numbers / parts)
    cuts = np.maximum.accumulate(cuts - numbers) + numbers  # no part is empty
    return np.split(rounds[order], np.clip(cuts, numbers, rounds.size - parts + numbers))


@torch.no_grad()
def move_average(average: AveragedModel, network: nn.Module, steps: int, decay: float) -> None:
    """Move an exponential average towards a network. It forgets the first steps sooner, and begins with the first.

    This is what `update_parameters` does, but that reads the number of steps from the GPU, three times for each step of
    the optimiser, and so waits until the GPU has nothing left to do.
    """
    moved = get_ema_multi_avg_fn(min(decay, steps / (steps + 10.0)))
    moved([*average.module.parameters()], [*network.parameters()], None)
    for own, current in zip(average.module.buffers(), network.buffers(), strict=True):
        own.copy_(current)
    average.n_averaged += 1


def grow_into(network: nn.Module, smaller: nn.Module) -> None:
    """Copy the weights of a network that had fewer words or labels; what is new stays as it is."""
    old = smaller.state_dict()
    with torch.no_grad():
        for name, tensor in network.state_dict().items():
            if name in old:
                tensor[tuple(slice(size) for size in old[name].shape)] = old[name].to(tensor.device)


def padded_to(shape: torch.Size, tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of this shape that begins with the given one; the rest is zero.

    >>> padded_to(torch.Size([2, 3]), torch.ones(1, 2)).tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    made = tensor.new_zeros(shape)
    made[tuple(slice(size) for size in tensor.shape)] = tensor
    return made


def named_arrays(prefix: str, tensors: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Tensors and numbers as arrays; files have no arrays without dimensions, so the names of these end in `SINGLE`."""
    made = {}
    for name, value in tensors.items():
        tensor = torch.as_tensor(value).detach().cpu()
        tensor = tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor
        made[prefix + name + ("" if tensor.ndim else SINGLE)] = tensor.reshape(tensor.shape or (1,)).numpy().copy()
    return made


def arrays_named(prefix: str, state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays that `named_arrays` made, among others."""
    found = {}
    for name, array in state.items():
        if name.startswith(prefix):
            single = name.endswith(SINGLE)
            found[name.removeprefix(prefix).removesuffix(SINGLE)] = (
                np.array(array).reshape(()) if single else np.array(array)
            )
    return found


def check_shapes(network: nn.Module, arrays: Mapping[str, np.ndarray]) -> None:
    """Raise an error if arrays are not those of a network of this shape."""
    own = network.state_dict()
    for name in sorted({*own} ^ {*arrays}):
        where = "the file has none" if name in own else "this network has none"
        raise LolsError(f"'{name}' does not fit, {where}: create the network with the settings of training")
    for name, array in arrays.items():
        if tuple(array.shape) != tuple(own[name].shape):
            raise LolsError(
                f"'{name}' has shape {tuple(array.shape)}, and this network has {tuple(own[name].shape)}: create it "
                "with the settings of training"
            )


def check_fits(make: Callable[[], nn.Module], state: Mapping[str, np.ndarray]) -> None:
    """Raise an error if a network would have another shape than the arrays of a policy; nothing large is allocated."""
    with torch.device("meta"):
        network = make()
    check_shapes(network, arrays_named("network.", state))


def loaded_into(network: nn.Module, arrays: Mapping[str, np.ndarray]) -> None:
    """Copy arrays into a network of the same shape."""
    check_shapes(network, arrays)
    network.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
