"""Tasks of the user's own on the command line: the Python file that has one, and models that were trained for it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from lols.errors import ConfigurationError, LolsError, warn

TaskOption = Annotated[
    str | None,
    typer.Option(
        "--task",
        metavar="FILE.py[:NAME]",
        help="For a model of a task of your own: the Python file that has it, which is run, and its name if there are "
        "several.",
        show_default=False,
    ),
]


def run_file(file: Path) -> ModuleType:
    """The file as a module, imported under its own name, so that compiled kernels are found again."""
    if not file.is_file():
        raise LolsError(f"{file}: there is no such file; name the Python file of the task")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{file}: is not a Python file; its name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.resolve().parent))  # for what it imports
    sys.modules[file.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigurationError(f"{file}: running it fails with {type(error).__name__}: {error}") from error
    return module


def problem_of(module: ModuleType, file: Path, name: str | None) -> tuple[str, Any]:
    """The task or program of a file, with its name: the one of this name, or the only one."""
    from lols.contract.space import SearchSpace
    from lols.contract.task import Task
    from lols.programs.program import Program

    own = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, Program | SearchSpace | Task)
        or (isinstance(value, type) and issubclass(value, Task) and value.__module__ == module.__name__)
    }
    if name is not None and name not in own:
        raise ConfigurationError(f"{file}: has no task '{name}': it has {', '.join(own) or 'none'}")
    if name is None and len(own) != 1:
        several = f"has {len(own)} tasks, {', '.join(own)}: choose one by --task"
        raise ConfigurationError(f"{file}: {several if own else 'has no lols.Task, and no lols.Program'}")
    name = name or next(iter(own))
    return name, own[name]


def loaded(model: str, task: str | None) -> Any:
    """The estimator in a model file; with a task of the user's own, what has the verbs of one."""
    from lols.front import load

    if task is None:
        return load(model)
    from lols.tasks.own import own_model

    module, named, made = loaded_for(model, task)
    if has_changed(made):
        warn(f"{named} has changed since {model} was trained")
    return own_model(made, model, read_line=getattr(module, "read_line", None))


def loaded_for(model: str, task: str) -> tuple[ModuleType, str, Any]:
    """The module of a task, what the task is called, and the model, loaded for it."""
    from lols.front import load
    from lols.tasks.registry import read_model

    stored = read_model(model)
    stored.check_finished()
    if stored.verbs is not None:
        raise ConfigurationError(f"--task has no effect: the model is {stored.verbs.described}")
    file, name = task_place(task)
    module = run_file(file)
    name, problem = problem_of(module, file, name)
    return module, f"{file}:{name}", load(model, problem)


def compared_task(model: str, task: str) -> dict[str, Any]:
    """What a task is called, and whether its functions have changed since a model was trained."""
    _, named, made = loaded_for(model, task)
    return {"name": named, "changed": has_changed(made)}


def has_changed(model: Any) -> bool:
    """Whether the functions of a task or program are others than in the training of a model."""
    return bool(model.about.get("space_changed") or model.about.get("program_changed"))


def check_alone(task: str | None) -> None:
    """Raise an error if there is a task where workers would have to know it."""
    if task is not None:
        raise ConfigurationError("--task has no effect with several files or an engine: give one file alone")


def task_place(task: str) -> tuple[Path, str | None]:
    """File and name of what was typed.

    >>> task_place("shop.py:Shop")[1], task_place("shop.py")[1]
    ('Shop', None)
    """
    file, colon, name = task.rpartition(":")
    return (Path(file), name) if colon and file.endswith(".py") else (Path(task), None)
