"""`lols optimise`: learn to decide better than the heuristic in a Python file of the user's."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from lols.cli.base import Json, app, option, print_json
from lols.cli.verb import Threads
from lols.errors import ConfigurationError

INTERRUPTED = 130  # the exit code after Ctrl-C


@app.command()
def optimise(
    file: Annotated[
        Path, typer.Argument(help="A Python file with a task or a program, and `draw` or `instances`.", exists=True)
    ],
    task: Annotated[str | None, option("The task or program, if the file has several.")] = None,
    instances: Annotated[
        str | None, option("A function of a random generator, or a list; default: draw, or instances.")
    ] = None,
    minutes: Annotated[float, typer.Option(help="The time budget; compiling does not count.")] = 2.0,
    best_of: Annotated[int, typer.Option(help="How many samples of the policy the report also compares.")] = 64,
    sample_steps: Annotated[
        int | None,
        option("Deviate at this many random states of an instance; by default at all that there is time for."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of all random choices.")] = 0,
    output: Annotated[Path | None, option("Where to write the model.", "--output", "-o")] = None,
    resume: Annotated[
        Path | None, option("A model that this command has written: its strategy is trained on.", exists=True)
    ] = None,
    picture: Annotated[
        Path | None, option("Draw an instance before and after by `show(axes, instance, output)` of the file.")
    ] = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Learn a policy that decides better than a heuristic, and say how it compares.

    FILE is Python code of your own, and is run. It has a `lols.Task` whose `reference` is the heuristic, or a
    `lols.Program`, and either a function `draw(rng)` that returns a random instance or a list `instances`. Strategies
    are compared on held-out instances; if none is better than the heuristic, predictions remain the heuristic's.

    Ctrl-C ends the learning: the report is of the best policy so far, which is written to the model.
    """
    from lols.front import load
    from lols.heuristics.optimise import optimise as learn
    from lols.io.whole_file import check_writable
    from lols.plots.look import check_plot

    if output is not None:
        check_writable(output)
    if picture is not None:
        check_plot(picture)
    with _interruptible():
        module = _run(file)
        name, problem = _problem(module, file, task)
        source = _instances(module, file, instances)
        if picture is not None and not hasattr(module, "show"):
            raise ConfigurationError(
                f"{file}: has no `show`: --picture draws by a function show(axes, instance, output)"
            )
        found = learn(
            problem, source, minutes=minutes, best_of=best_of, sample_steps=sample_steps, seed=seed, threads=threads,
            progress=not as_json, resume=None if resume is None else load(resume, problem),
        )  # fmt: skip
        if output is not None:
            found.save(output)
        picture = None if found.report.interrupted else picture
        if picture is not None:
            import numpy as np

            instance = source(np.random.default_rng([seed, 1])) if callable(source) else source[0]  # one drawn anew
            found.picture(instance, module.show, picture, best_of=best_of)
        if as_json:
            written = {"model": output and str(output), "picture": picture and str(picture)}
            print_json({"file": str(file), "task": name, **found.report.as_dict(), **written})
        else:
            print(found.report)
            if output is not None:
                print(f'\nWrote {output}: lols.load("{output}", {name}) reads it, and predicts the same.')
            if picture is not None:
                print(f"\nDrew an instance before and after: {picture}")
        if found.report.interrupted:
            if not as_json and output is not None:
                print(f"\nlols optimise {file} --resume {output} goes on.")
            raise typer.Exit(INTERRUPTED)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C where nothing is learned ends the command in a line."""
    try:
        yield
    except KeyboardInterrupt:
        print("lols: interrupted", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def _run(file: Path) -> ModuleType:
    """The file as a module, imported under its own name, so that compiled kernels are found again."""
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


def _problem(module: ModuleType, file: Path, name: str | None) -> tuple[str, Any]:
    """The task or program of a file, with its name: the one of this name, or the only one."""
    from lols.contract.task import Task
    from lols.programs.program import Program

    own = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, Program | Task)
        or (isinstance(value, type) and issubclass(value, Task) and value.__module__ == module.__name__)
    }
    if name is not None and name not in own:
        raise ConfigurationError(f"{file}: has no task '{name}': it has {', '.join(own) or 'none'}")
    if name is None and len(own) != 1:
        several = f"has {len(own)} tasks, {', '.join(own)}: choose one by --task"
        raise ConfigurationError(f"{file}: {several if own else 'has no lols.Task, and no lols.Program'}")
    name = name or next(iter(own))
    return name, own[name]


def _instances(module: ModuleType, file: Path, name: str | None) -> Any:
    """The function that draws instances, or the list of them."""
    for wanted in (name,) if name is not None else ("draw", "instances"):
        if hasattr(module, wanted):
            return getattr(module, wanted)
    missing = f"has no `{name}`" if name is not None else "has neither `draw` nor `instances`"
    raise ConfigurationError(f"{file}: {missing}: give it a function draw(rng) or a list of instances")
