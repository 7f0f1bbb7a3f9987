"""`lols.train` and `lols.load`, for search spaces, tasks and programs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.contract.task import Task, as_space
from lols.errors import ConfigurationError
from lols.io.model_file import read_tensors
from lols.programs.program import Program

__all__ = ["load", "train"]


def train(
    space: SearchSpace | Task | type[Task] | Program,
    data: Iterable[Any] | Examples,
    reference: Reference | None = None,
    **options: Any,
) -> Any:
    """Train a policy in one call: `Trainer(space, reference, **options).fit(data)`.

    A `Task` may have its own teacher, which is used unless another `reference` is given. A `Program` names its
    reference itself; the resulting model runs the program.

    See `Trainer` for the options; `checkpoint`, `resume`, `progress` and `after_pass` are those of `Trainer.fit`.
    """
    if isinstance(space, Program):
        from lols.programs.training import train_program

        return train_program(space, data, reference, **options)
    from lols.training.trainer import Trainer

    names = ("checkpoint", "checkpoint_every", "resume", "progress", "after_pass")
    fitting = {name: options.pop(name) for name in names if name in options}
    return Trainer(space, reference, **options).fit(data, **fitting)


def load(
    path: str | os.PathLike[str],
    space: SearchSpace | Task | type[Task] | Program | None = None,
    *,
    policy: Any = None,
    threads: int = 1,
    compiled: bool = True,
) -> Any:
    """Read a model file, which contains data only.

    With a space (or a `Task` or `Program`), returns a model for it. The space must have the number of actions and the
    settings of the one in training; if its functions have changed since, `model.about["space_changed"]` is True.
    Without a space, returns the estimator that wrote the file. If the model was trained with `policy`, an object of the
    same class must be given; its `load` receives the arrays.
    """
    if space is None:
        from lols.tasks.registry import read_model

        return read_model(path).load(threads=threads)
    if isinstance(space, Program):
        if policy is not None:
            raise ConfigurationError("policy has no effect: programs are trained with the linear learner")
        from lols.programs.model import load_program

        return load_program(path, space, compiled=compiled)
    from lols.training.model import make_model

    how: dict[str, Any] = {"policy": policy, "threads": threads, "compiled": compiled}
    return make_model(path, *read_tensors(path, "model"), as_space(space), **how)
