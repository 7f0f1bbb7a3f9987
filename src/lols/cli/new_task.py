"""`lols new-task`: a small task to start from, as a file that runs, and its tests."""

from __future__ import annotations

import keyword
import sys
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from lols.cli.base import app
from lols.cli.console import say
from lols.errors import ConfigurationError
from lols.io.whole_file import write_whole

TAKEN = ("lols", "numpy", "numba", "pytest")


@app.command("new-task")
def new_task(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of the task, and of its file: NAME.py.", show_default=False)
    ],
    folder: Annotated[Path, typer.Option(help="The folder to write to; created if it does not exist.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
) -> None:
    """Write a search problem of your own to begin with: NAME.py, a small task that works, and test_NAME.py.

    The file says what to change: the data, the functions of the task, the teacher. It trains and compares as it is.
    """
    task = class_name(name)
    made = {folder / f"{name}.py": "new_task.py.txt", folder / f"test_{name}.py": "new_task_test.py.txt"}
    there = [str(path) for path in made if path.exists()]
    if there and not force:
        raise ConfigurationError(f"there already: {' and '.join(there)}; choose another name, or give --force")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, template in made.items():
            text = files("lols.cli").joinpath("templates", template).read_text("utf-8")
            write_whole(path, text.replace("TASK", task).replace("NAME", name).encode())
    except OSError as error:
        raise ConfigurationError(f"{folder}: cannot write there ({error.strerror or error})") from None
    file, tests = (str(path) for path in made)
    say.print(f"Wrote {file} (class {task}) and {tests}.")
    commands = {
        f"python {file}": "trains it, and compares it with its teacher",
        f"python {file} --plain": "the same without compilation, for debugging",
        f"pytest {tests}": "checks it",
    }
    for command, what in commands.items():
        say.print(f"  {command:{max(map(len, commands))}}  {what}")
    say.print("Then change what is marked CHANGE: the data first, then the functions.")


def class_name(name: str) -> str:
    """The class of a task, from the name of its file.

    >>> class_name("word_order"), class_name("my_task")
    ('WordOrderTask', 'MyTask')
    """
    if not name.isidentifier():
        better = "".join(c if c.isalnum() or c == "_" else "_" for c in name.removesuffix(".py"))
        hint = f": '{better}' would do" if better.isidentifier() and not keyword.iskeyword(better) else ""
        raise ConfigurationError(f"'{name}' cannot name a Python file that is imported{hint or ': use letters and _'}")
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise ConfigurationError(f"'{name}' is a word of Python itself: choose another name")
    if name in sys.stdlib_module_names or name in TAKEN:
        raise ConfigurationError(f"'{name}' is a module already, which {name}.py would hide: choose another name")
    made = "".join(part[:1].upper() + part[1:] for part in name.split("_")) or "My"
    return made if made.endswith("Task") else f"{made}Task"
