"""The neural policy of taggers and parsers: how their options make a network, and how it is trained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lols.contract.whole_numbers import check_number, check_whole
from lols.errors import ConfigurationError
from lols.policies.linear import Linear
from lols.policies.neural import Neural
from lols.training.algorithms import algorithm
from lols.training.trainer import Trainer

NETWORK_OPTIONS = tuple(name for name in Neural.OPTIONS if name not in Linear.OPTIONS)
RATE = 2e-3
AVERAGE = 0.998
NOISY = True  # dropout in the search
AHEAD = ("cuda",)  # devices on which a batch is searched while the network learns from the one before
BATCH = 1024  # examples that are searched together
TOGETHER, FEW, SLOWER = 32, 8, 4.0  # going on: examples of a batch and of a step, and by how much the rate is lower
STEP, ENOUGH = 64, 3000  # at most this many examples in a step of the optimiser; fewer if there were fewer steps in all


def neural_of(estimator: Any) -> Neural:
    """The neural policy that the options ask for."""
    if isinstance(estimator.policy, Neural):
        return estimator.policy
    return Neural(**{name: getattr(estimator, name) for name in Neural.SETTINGS})


def check_going_on(estimator: Any) -> None:
    """Raise an error if the options ask for another policy than the one that was learned."""
    asked = estimator._policy_notes()
    for name, value in estimator.learned_with_.items():
        if asked.get(name) != value:
            raise ConfigurationError(
                f"{name}={asked.get(name)!r} cannot go on from {name}={value!r}: leave it as it was, or train "
                "anew with warm_start=False"
            )


def place_of(make: Any) -> str:
    """Where a class or a function is defined.

    >>> place_of(Neural)
    'lols.policies.neural:Neural'
    """
    made = getattr(make, "func", make)  # of a partial one
    made = made if hasattr(made, "__qualname__") else type(made)
    return f"{made.__module__}:{made.__qualname__}"


def new_network(estimator: Any, task: Any) -> Any:
    """A network for a task that has learned nothing."""
    neural = neural_of(estimator)
    sizes = {name: getattr(neural, name) for name in ("width", "layers", "dropout")}
    return task.network(neural.network, seed=estimator.seed, **sizes)


def empty_policy(estimator: Any, task: Any, **learning: Any) -> Any:
    """A policy for a task that has learned nothing."""
    from lols.torch.learning import LearningSettings
    from lols.torch.policy import TorchPolicy
    from lols.torch.schedules import adam

    neural = neural_of(estimator)
    where: dict[str, Any] = {"device": neural.device, "precision": neural.precision, "seed": estimator.seed}
    policy = TorchPolicy(new_network(estimator, task), **where, noisy=NOISY, **learning)
    together = estimator.batch_size if estimator._changed("batch_size") else TOGETHER
    check_number("rate", neural.rate)
    rate, steps = (neural.rate or RATE) / SLOWER, neural.steps or math.ceil(together / FEW)
    check_whole("steps", steps)
    later = LearningSettings(steps=steps, optimizer=adam(rate), alike=True, average=AVERAGE, seed=estimator.seed)
    policy.learns_on_with(together, later)
    return policy


def learn_on(estimator: Any, task: Any) -> Any:
    """The stream from which a network learns on; if the task has grown since, so does the network."""
    stream = estimator._stream
    if stream is not None and task is estimator.task_:
        return stream
    policy = empty_policy(estimator, task).onward()
    if stream is not None:
        policy.begin_with(stream.policy)
        stream.go_on_with(_trainer(estimator, task, policy, policy.together))
        return stream
    if hasattr(estimator, "model_"):
        policy.begin_with(estimator.model_.policy)
    return _trainer(estimator, task, policy, policy.together).stream()


def check_file(estimator: Any, task: Any, tensors: Mapping[str, Any]) -> None:
    """Raise an error if the arrays of a model file are not those of the network that its header describes."""
    from lols.torch.learning import check_fits

    own = {name.removeprefix("policy."): array for name, array in tensors.items() if name.startswith("policy.")}
    if neural_of(estimator).network is not None:
        return  # only loading can tell what a network of the user's own needs
    if task.vocabulary.pieces is not None:
        from lols.torch.pretrained import PREFIX, check_description

        shapes = [array.shape for name, array in own.items() if name.startswith(f"network.{PREFIX}")]
        check_description(task.vocabulary.pieces.config, shapes)
    check_fits(lambda: new_network(estimator, task), own)


def neural_trainer(estimator: Any, task: Any, examples: int) -> Trainer:
    """The trainer of a neural policy on this many examples."""
    from lols.torch.calls import chosen_device
    from lols.torch.schedules import adam, warm_up_and_decay

    neural = neural_of(estimator)
    together = estimator.batch_size if estimator._changed("batch_size") else min(BATCH, max(1, examples // 8))
    steps = neural.steps
    if steps is None:
        steps = max(4, math.ceil(together / max(8, min(STEP, examples * estimator.passes // ENOUGH))))
    check_whole("steps", steps)
    total = estimator.passes * steps * math.ceil(examples / together)
    policy = empty_policy(
        estimator,
        task,
        steps=steps,
        alike=True,
        ahead=chosen_device(neural.device).type in AHEAD,
        average=AVERAGE,
        optimizer=adam(neural.rate or RATE),
        schedule=warm_up_and_decay(total),
    )
    return _trainer(estimator, task, policy, together)


def _trainer(estimator: Any, task: Any, policy: Any, together: int) -> Trainer:
    options = {name: getattr(estimator, name) for name in ("roll_in", "roll_out", "beta", "mix")}
    return Trainer(
        task.space,
        task.reference(estimator.reference),
        algorithm=algorithm(estimator._algorithm(), **options),
        policy=policy,
        passes=estimator.passes,
        batch_size=together,
        seed=estimator.seed,
        threads=estimator.threads,
        shuffle=estimator.shuffle,
        engine=estimator.engine,
    )
