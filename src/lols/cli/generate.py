"""Commands whose options are the fields of dataclasses: see `lols.tasks.options`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from lols.tasks.options import INPUT, Option, options_of, types_of


def command(
    app: typer.Typer,
    name: str,
    parameters: Iterable[inspect.Parameter],
    run: Callable[..., None],
    help: str,
    kind: type[TyperCommand] = TyperCommand,
) -> None:
    """Add a command with these parameters to an application."""

    def call(**values: Any) -> None:
        run(**values)

    ordered = sorted(parameters, key=lambda p: p.default is not inspect.Parameter.empty)
    call.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in ordered}
    call.__name__, call.__doc__ = name.replace("-", "_"), inspect.cleandoc(help)
    app.command(name, cls=kind)(call)


def built_command(
    name: str,
    parameters: Iterable[inspect.Parameter],
    run: Callable[..., None],
    help: str,
    kind: type[TyperCommand] = TyperCommand,
) -> Any:
    """A command with these parameters, which is not yet part of an application."""
    alone = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    command(alone, name, parameters, run, help, kind)
    built = typer.main.get_command(alone)
    built.name = name
    return built


def parameters_of(kind: type, *, short: bool = False) -> list[inspect.Parameter]:
    """The options of a dataclass as parameters of a command; `short` if its help is."""
    types = types_of(kind)
    return [
        parameter(
            name, found.kind or types[name], field.default if found.initial is ... else found.initial, found, short
        )
        for name, field, found in options_of(kind)
        if found.cli
    ]


def required(name: str, annotation: Any) -> inspect.Parameter:
    """A parameter of a command that must be given."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation)


def optional(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """A parameter of a command that may be left out."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def parameter(name: str, kind: Any, default: Any, option: Option, short: bool = False) -> inspect.Parameter:
    """One option of a command; where its help is short, only common options are in the first panel."""
    flags = [option.flag] if option.flag else []
    panel = option.panel if not short else None if option.common else option.panel or INPUT
    shown = default not in (None, ())
    more: Any = typer.Option(*flags, help=option.typed or option.help, rich_help_panel=panel, show_default=shown)
    return optional(name, Annotated[kind, more], default)


class ShortHelp(TyperCommand):
    """A command whose `--help` lists the options of the first panel, and `--help-all` those of all panels."""

    whole = False

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        rest = [] if self.whole else [each for each in self.params if getattr(each, "rich_help_panel", None)]
        for each in rest:
            each.hidden = True  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)
        for each in rest:
            each.hidden = False  # type: ignore[attr-defined]


def help_all() -> inspect.Parameter:
    """`--help-all`, of a command with a short help."""

    def show(context: typer.Context, wanted: bool) -> None:
        if wanted:
            context.command.whole = True  # type: ignore[attr-defined]
            typer.echo(context.get_help())
            raise typer.Exit

    more: Any = typer.Option(
        "--help-all", help="Show all options and exit.", is_eager=True, expose_value=False, callback=show
    )
    return optional("help_all", Annotated[bool, more], False)
