"""The neural policy of taggers and parsers: how their options make a network, and how it is trained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lols.contract.whole_numbers import check_number, check_whole
from lols.errors import ConfigurationError
from lols.training.algorithms import algorithm
from lols.training.trainer import Trainer

RATE = 2e-3
AVERAGE = 0.998
NOISY = True  # dropout in the search
AHEAD = ("cuda",)  # devices on which a batch is searched while the network learns from the one before
BATCH = 1024  # examples that are searched together
TOGETHER, FEW, SLOWER = 32, 8, 4.0  # going on: examples of a batch and of a step, and by how much the rate is lower
STEP, ENOUGH = 64, 3000  # at most this many examples in a step of the optimiser; fewer if there were fewer steps in all
POLICIES = ("linear", "neural")
NETWORK_OPTIONS = ("device", "precision", "width", "layers", "vectors", "encoder", "dropout", "steps")
LINEAR_OPTIONS = (
    "learner",
    "update",
    "slack",
    "margin",
    "prune",
    "templates",
    "more_templates",
    "clusters",
    "keep_state",
)


def check_policy(estimator: Any) -> None:
    """Raise an error if options have no effect with the policy that is chosen."""
    if estimator.policy not in POLICIES:
        raise ConfigurationError(f"unknown policy '{estimator.policy}': choose {' or '.join(POLICIES)}")
    neural = estimator.policy == "neural"
    known = estimator._defaults()
    for name in LINEAR_OPTIONS if neural else NETWORK_OPTIONS:
        if name in known and estimator._changed(name):
            other = "linear" if neural else "neural"
            raise ConfigurationError(f"{name} has no effect: it is for policy='{other}'; leave it out")


def check_going_on(estimator: Any) -> None:
    """Raise an error if the options ask for another policy than the one that was learned."""
    network, learned = getattr(estimator._fitted.policy, "network", None), {"policy": "linear"}
    if network is not None:
        sizes = network.encoder.sizes
        learned = {"policy": "neural", "width": sizes.width, "layers": sizes.layers, **estimator.learned_elsewhere_}
    for name, value in learned.items():
        if getattr(estimator, name) != value:
            raise ConfigurationError(
                f"{name}={getattr(estimator, name)!r} cannot go on from {name}={value!r}: leave it as it was, or train "
                "anew with warm_start=False"
            )


def sizes_of(estimator: Any) -> Mapping[str, Any]:
    """The sizes of the network that the options ask for."""
    return {name: getattr(estimator, name) for name in ("width", "layers", "dropout", "seed")}


def empty_policy(estimator: Any, task: Any, **learning: Any) -> Any:
    """A policy for a task that has learned nothing."""
    from lols.torch.learning import LearningSettings
    from lols.torch.policy import TorchPolicy
    from lols.torch.schedules import adam

    where = {"device": estimator.device, "precision": estimator.precision, "seed": estimator.seed}
    policy = TorchPolicy(task.network(**sizes_of(estimator)), **where, noisy=NOISY, **learning)
    together = estimator.batch_size if estimator._changed("batch_size") else TOGETHER
    check_number("rate", estimator.rate)
    rate, steps = (estimator.rate or RATE) / SLOWER, estimator.steps or math.ceil(together / FEW)
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
    if task.vocabulary.pieces is not None:
        from lols.torch.pretrained import PREFIX, check_description

        shapes = [array.shape for name, array in own.items() if name.startswith(f"network.{PREFIX}")]
        check_description(task.vocabulary.pieces.config, shapes)
    check_fits(lambda: task.network(**sizes_of(estimator)), own)


def neural_trainer(estimator: Any, task: Any, examples: int) -> Trainer:
    """The trainer of a neural policy on this many examples."""
    from lols.torch.calls import chosen_device
    from lols.torch.schedules import adam, warm_up_and_decay

    together = estimator.batch_size if estimator._changed("batch_size") else min(BATCH, max(1, examples // 8))
    steps = estimator.steps
    if steps is None:
        steps = max(4, math.ceil(together / max(8, min(STEP, examples * estimator.passes // ENOUGH))))
    check_whole("steps", steps)
    total = estimator.passes * steps * math.ceil(examples / together)
    policy = empty_policy(
        estimator,
        task,
        steps=steps,
        alike=True,
        ahead=chosen_device(estimator.device).type in AHEAD,
        average=AVERAGE,
        optimizer=adam(estimator.rate or RATE),
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
