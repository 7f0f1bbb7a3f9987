"""Commands whose options are the fields of dataclasses: see `lols.tasks.options`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from lols.tasks.options import Option, options_of, types_of


def command(
    app: typer.Typer, name: str, parameters: Iterable[inspect.Parameter], run: Callable[..., None], help: str
) -> None:
    """Add a command with these parameters to an application."""

    def call(**values: Any) -> None:
        run(**values)

    ordered = sorted(parameters, key=lambda p: p.default is not inspect.Parameter.empty)
    call.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in ordered}
    call.__name__, call.__doc__ = name.replace("-", "_"), inspect.cleandoc(help)
    app.command(name)(call)


def built_command(name: str, parameters: Iterable[inspect.Parameter], run: Callable[..., None], help: str) -> Any:
    """A command with these parameters, which is not yet part of an application."""
    alone = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    command(alone, name, parameters, run, help)
    built = typer.main.get_command(alone)
    built.name = name
    return built


def parameters_of(kind: type) -> list[inspect.Parameter]:
    """The options of a dataclass as parameters of a command."""
    types = types_of(kind)
    return [
        parameter(name, found.kind or types[name], field.default if found.initial is ... else found.initial, found)
        for name, field, found in options_of(kind)
        if found.cli
    ]


def required(name: str, annotation: Any) -> inspect.Parameter:
    """A parameter of a command that must be given."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation)


def optional(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """A parameter of a command that may be left out."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def parameter(name: str, kind: Any, default: Any, option: Option) -> inspect.Parameter:
    """One option of a command."""
    flags = [option.flag] if option.flag else []
    shown = default not in (None, ())
    more: Any = typer.Option(*flags, help=option.typed or option.help, rich_help_panel=option.panel, show_default=shown)
    return optional(name, Annotated[kind, more], default)
