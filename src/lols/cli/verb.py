"""What the commands on models share: options that are the union over the registry, and those that have no effect.

An option of `lols predict`, say, is a field of the dataclasses that the estimators' `VERBS` name for it. Estimators may
share an option; one that the model at hand does not take is refused.
"""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, NamedTuple

import typer

from lols.cli.generate import optional
from lols.errors import ConfigurationError
from lols.tasks.options import Option, options_of, types_of
from lols.tasks.own_options import VERBS as OWN
from lols.tasks.registry import ESTIMATORS, verbs
from lols.tasks.verbs import Verbs

LAYOUT = "Where things are in the file; as in training unless given"

ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="A model file.", show_default=False)]
Threads = Annotated[
    int | None, typer.Option(help="Threads; by default what is fastest: all cores, but at most 6.", show_default=False)
]


class Field(NamedTuple):
    """A field that an estimator takes as an option."""

    name: str
    kind: Any
    default: Any
    option: Option

    @property
    def help(self) -> str:
        """The help, with the default where there is one to be shown."""
        text = self.option.typed or self.option.help
        shown = self.default is not None and not isinstance(self.default, bool)
        return f"{text} By default {self.default}." if shown else text


class VerbOptions:
    """The options of a verb, of all estimators together.

    Parameters
    ----------
    verb
        The name of the verb in `Verbs.options`.
    files
        Whether the verb reads a file, so that the options that say where things are in it are among them.
    panel
        The panel of `--help` for the verb's own options.

    """

    def __init__(self, verb: str, *, files: bool = True, panel: str | None = None):
        self.known = {name: verbs(name) for name in ESTIMATORS} | {OWN.name: OWN}
        self.fields: dict[str, dict[str, Field]] = {}  # by flag, then by estimator
        self.panels: dict[str, str | None] = {}
        for name, each in self.known.items():
            self._add(name, each.options_of(verb), panel)
        for name, each in self.known.items() if files else ():
            self._add(name, each.files, LAYOUT)

    def _add(self, estimator: str, kind: type, panel: str | None) -> None:
        types = types_of(kind)
        for name, field, option in options_of(kind):
            flag = option.flag or "--" + name.replace("_", "-")
            default = None if panel == LAYOUT else field.default
            found = Field(name, option.kind or types[name], default, option)
            self.fields.setdefault(flag, {})[estimator] = found
            self.panels.setdefault(flag, panel)

    def parameters(self, without: Iterable[str] = ()) -> list[inspect.Parameter]:
        """The options as parameters of a command; None where nothing is typed."""
        found = []
        for flag, fields in self.fields.items():
            if parameter_name(flag) not in without:
                kind = next(iter(fields.values())).kind
                more: Any = typer.Option(
                    flag, help=self._help(fields), rich_help_panel=self.panels[flag], show_default=False
                )
                found.append(optional(parameter_name(flag), Annotated[kind | None, more], None))
        return found

    def _help(self, fields: Mapping[str, Field]) -> str:
        """The help of an option, with the estimators that take it unless all do."""
        texts: dict[str, list[str]] = {}
        for estimator, field in fields.items():
            texts.setdefault(field.help, []).append(estimator)
        if len(texts) == 1 and fields.keys() >= ESTIMATORS.keys():
            return next(iter(texts))
        return " ".join(f"{', '.join(names).capitalize()}: {text}" for text, names in texts.items())

    def values(self, typed: Mapping[str, Any], model: Verbs | None, why: str = "") -> dict[str, Any]:
        """The arguments that were typed for a model; what it does not take is a mistake, for the reason `why`."""
        values = {}
        for flag, fields in self.fields.items():
            value = typed.get(parameter_name(flag))
            if value is None or value == []:
                continue
            field = fields.get(model.name) if model is not None else None
            if field is None:
                raise ConfigurationError(f"{typed_flag(flag, value)} has no effect: {why or self._why(fields, model)}")
            values[field.name] = field.option.parse(value) if field.option.parse is not None else value
        return values

    def _why(self, fields: Mapping[str, Field], model: Verbs | None) -> str:
        """That the model is of another kind; and what it calls the same thing, if it has it."""
        if model is None:
            return f"the model is {OWN.described}"
        names = {field.name for field in fields.values()}
        other = next((f for f, own in self.fields.items() if model.name in own and own[model.name].name in names), None)
        return f"the model is {model.described}" + (f"; it takes {other}" if other else "")


def parameter_name(flag: str) -> str:
    """The name of the parameter of a flag.

    >>> parameter_name("--header/--no-header"), parameter_name("--labels-only")
    ('header', 'labels_only')
    """
    return flag.partition("/")[0].removeprefix("--").replace("-", "_")


def typed_flag(flag: str, value: Any) -> str:
    """What was typed: of two flags the one for the value."""
    yes, _, no = flag.partition("/")
    return no if no and value is False else yes


def file_argument(before: str, kind: Any = str) -> Any:
    """The argument FILE; its help says what the files of the estimators are."""
    texts: dict[str, list[str]] = {}
    for name in ESTIMATORS:
        texts.setdefault(verbs(name).input, []).append(name)
    known = (f"{', '.join(names).capitalize()}: {each}" for each, names in texts.items())
    text = " ".join([before, *known, f"With --task: {OWN.input}"])
    return Annotated[kind, typer.Argument(metavar="FILE", help=text, show_default=False)]


def settle() -> None:
    """Leave what was imported out of garbage collection: there is much of it, and all of it stays."""
    import gc

    gc.collect()
    gc.freeze()


def told_pieces() -> Callable[[str, int], None]:
    """Says on terminals, once a second, how many pieces of a file are done."""
    told = time.monotonic()

    def watch(file: str, pieces: int) -> None:
        nonlocal told
        if sys.stderr.isatty() and time.monotonic() - told > 1.0:
            told = time.monotonic()
            print(f"\r{file}: {pieces} pieces", end="", file=sys.stderr)

    return watch
