"""`lols bandit audit`, `relearn` and `export`: what can be done with the log of a bandit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lols.cli.base import Json, option, print_json
from lols.cli.console import say
from lols.cli.task_file import run_file, task_place
from lols.errors import ConfigurationError

if TYPE_CHECKING:
    from lols.bandit.bandit import StructuredBandit

LogFile = Annotated[Path, typer.Argument(metavar="LOG", help="The log of a bandit, an SQLite file.")]
BanditOption = Annotated[
    str,
    typer.Option(
        "--bandit",
        metavar="FILE.py[:NAME]",
        help="A Python file, which is run, and the name of a function in it that takes a log and returns the bandit "
        "(`bandit` by default).",
        show_default=False,
    ),
]


def audit(log: LogFile, bandit: BanditOption, as_json: Json = False) -> None:
    """Learn everything in a log again, and compare the policies with those of its snapshots, bit for bit.

    The exit code is 1 if one of them is not the same. The log may be in use meanwhile.

    `lols bandit audit shown.log --bandit shop.py`
    """
    from lols.bandit.log import SqliteLog
    from lols.bandit.sqlite_file import compare, identity_text, parsed

    with SqliteLog(log, identity=None) as held, _made(bandit, held) as of:
        compare(held.identity, parsed(identity_text(of.identity()), log), log)
        found = of.audit()
        result = {
            "entries": held.place(),
            "same": all(each.same for each in found),
            "policies": [{**each._asdict(), "same": each.same} for each in found],
        }
    if as_json:
        print_json(result)
    else:
        for each in found:
            say.print(f"entry {each.place:,}: {each.found} {'as noted' if each.same else f'and not {each.noted}'}")
        say.print(f"{result['entries']:,} entries, {'the same policies' if result['same'] else 'other policies'}")
    if not result["same"]:
        raise typer.Exit(1)


def relearn(
    log: LogFile,
    bandit: BanditOption,
    output: Annotated[Path, typer.Option("--output", "-o", help="The new log; it must not exist.")],
    held_out: Annotated[
        float, option("The share of decisions, the last ones, on which the new policy is evaluated first.")
    ] = 0.1,
    as_json: Json = False,
) -> None:
    """Learn from the objects, actions and losses of a log again, with other features or another learner.

    The old log stays as it is, and may be in use. The new one continues it: start the bandit with it to promote what
    was learned.

    `lols bandit relearn shown.log --bandit shop.py -o new.log`
    """
    from lols.bandit.log import SqliteLog
    from lols.bandit.relearn import relearn as learn_again

    with SqliteLog(log, identity=None) as old:
        done = learn_again(old, lambda path: _made(bandit, path), output, held_out=held_out)
    result: dict[str, Any] = {
        **{name: getattr(done, name) for name in ("decisions", "losses", "left_out", "digest")},
        "evaluated": None if done.evaluated is None else _figures(done.evaluated),
        "kind": done.kind,
        "log": str(output),
    }
    if as_json:
        print_json(result)
        return
    say.print(f"{done.decisions:,} decisions, {done.losses:,} losses; {done.left_out:,} without an object left out")
    if done.evaluated is None:
        say.print(f"not evaluated: {done.kind}")
    else:
        found = done.evaluated
        what = "loss" if done.kind == "whole" else "loss of one-step deviations"
        say.print(f"{what} on the last {found.rounds:,} rounds: {found.dr}; in the log {found.logged}")
        say.print(f"difference: {found.difference}")
        if found.warning is not None:
            say.print(found.warning)
    say.print(f"{output} written")


def export(
    log: LogFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="A .parquet or .jsonl file.")],
    as_json: Json = False,
) -> None:
    """Write the decisions of a log with their losses to a table: Parquet, or lines of JSON.

    `lols bandit export shown.log -o shown.parquet`
    """
    from lols.bandit.export import export as write
    from lols.bandit.log import SqliteLog

    with SqliteLog(log, identity=None) as held:
        rows = write(held, output)
    if as_json:
        print_json({"rows": rows, "output": str(output)})
    else:
        say.print(f"{rows:,} decisions written to {output}")


def _figures(found: Any) -> dict[str, Any]:
    names = ("ips", "snips", "dr", "logged", "difference")
    figures = {name: dict(zip(("value", "low", "high"), getattr(found, name)[:3], strict=True)) for name in names}
    return {**figures, "rounds": found.rounds, "warning": found.warning}


def _made(place: str, log: Any) -> StructuredBandit:
    """The bandit that a function of the user's makes for a log."""
    from lols.bandit.bandit import StructuredBandit

    file, name = task_place(place)
    make = getattr(run_file(file), name or "bandit", None)
    if not callable(make):
        raise ConfigurationError(f"{file}: has no function `{name or 'bandit'}(log)` that returns the bandit")
    made = make(log)
    made = getattr(made, "bandit", made)
    if not isinstance(made, StructuredBandit):
        raise ConfigurationError(f"{file}: `{name or 'bandit'}(log)` returns a {type(made).__name__}, not a bandit")
    return made
