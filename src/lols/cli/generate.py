"""Commands whose options are the fields of dataclasses: see `lols.tasks.options`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

import typer

from lols.tasks.options import Option, options_of, types_of

__all__ = ["command", "parameters_of", "values_of"]


def command(
    app: typer.Typer, name: str, parameters: Iterable[inspect.Parameter], run: Callable[..., None], help: str
) -> None:
    """Add a command with these parameters to an application."""

    def call(**values: Any) -> None:
        run(**values)

    ordered = sorted(parameters, key=lambda p: p.default is not inspect.Parameter.empty)
    call.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in ordered}
    call.__name__, call.__doc__ = name.replace("-", "_"), help
    app.command(name)(call)


def parameters_of(kind: type) -> list[inspect.Parameter]:
    """The options of a dataclass as parameters of a command."""
    types = types_of(kind)
    return [
        parameter(name, found.kind or types[name], field.default if found.default is ... else found.default, found)
        for name, field, found in options_of(kind)
        if found.cli
    ]


def parameter(name: str, kind: Any, default: Any, option: Option) -> inspect.Parameter:
    """One option of a command."""
    flags = [option.flag] if option.flag else []
    shown = default not in (None, ())
    more: Any = typer.Option(*flags, help=option.help, rich_help_panel=option.panel, show_default=shown)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, more])


def values_of(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """From what was typed to the arguments of a dataclass; other values are left out."""
    made = {}
    for name, _, found in options_of(kind):
        if found.cli and name in values:
            value = values[name]
            made[name] = found.parse(value) if found.parse is not None and value is not None else value
    return made
