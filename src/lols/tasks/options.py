"""One list of options: what an estimator takes, said once for Python, the command line and the API pages.

An option is a field of a keyword-only dataclass. Its help is metadata of the field. The generated constructor is an
explicit signature, so scikit-learn's `get_params` and `clone` work; `lols.cli.generate` turns the same fields into
options of a command, and `estimator` writes the Parameters section of the class's documentation from them.
"""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar, dataclass_transform

# The panels of `--help`.
INPUT, SEARCH, LEARNING, NETWORK = "Input", "Search", "Learning", "Network"
WIDTH = 116
LONGEST = 1000  # characters of an option in a model file

Kind = TypeVar("Kind")


def is_plain(value: Any) -> bool:
    """Whether an option can be in a model file: a number, a text that is not too long, or nothing."""
    return value is None or isinstance(value, int | float) or (isinstance(value, str) and len(value) <= LONGEST)


class Option(NamedTuple):
    """How an option is documented, and how it is written on the command line.

    Parameters
    ----------
    help
        One or two sentences, for `--help` and for the API pages.
    panel
        The panel of `--help` in which it is listed.
    flag
        What is typed, if not the name of the field with dashes: `"--template"`, `"--header/--no-header"`.
    kind
        The type on the command line, if not that of the field.
    parse
        From the value on the command line to that of the field. None means that nothing was typed, and is not parsed.
    typed
        The help on the command line, where the value is written differently there.
    initial
        The default on the command line, where it is written differently than in Python; `...` for the field's own.
    cli
        False for what makes no sense on a command line.
    common
        Whether `--help` lists it; the others are listed by `--help-all`, in their panels.

    """

    help: str
    panel: str | None = None
    flag: str | None = None
    typed: str | None = None
    kind: Any = None
    parse: Callable[[Any], Any] | None = None
    initial: Any = ...
    cli: bool = True
    common: bool = False


def option(*, default: Any, help: str, panel: str | None = None, **more: Any) -> Any:
    """A field of an estimator that is an option.

    >>> @dataclasses.dataclass(kw_only=True)
    ... class Guess:
    ...     value: int = option(default=0, help="What is guessed.")
    >>> Guess(value=1), [(name, found.help) for name, _, found in options_of(Guess)]
    (Guess(value=1), [('value', 'What is guessed.')])
    """
    return dataclasses.field(default=default, metadata={"option": Option(help, panel, **more)})


def shared(kind: type, name: str, *, default: Any, **texts: Any) -> Any:
    """The option of a base class with another default, or with other texts."""
    found = next(found for each, _, found in options_of(kind) if each == name)
    return dataclasses.field(default=default, metadata={"option": found._replace(**texts)})


def options_of(kind: type) -> Iterator[tuple[str, dataclasses.Field[Any], Option]]:
    """Name, field and documentation of each option of a dataclass: its own ones first, then those of its bases."""
    fields = {each.name: each for each in dataclasses.fields(kind) if "option" in each.metadata}
    names = [name for base in kind.__mro__ for name in inspect.get_annotations(base)]
    for name in dict.fromkeys(names):
        if name in fields:
            yield name, fields[name], fields[name].metadata["option"]


def types_of(kind: type) -> dict[str, Any]:
    """The types of the fields, resolved."""
    return typing.get_type_hints(kind)


@dataclass_transform(kw_only_default=True, field_specifiers=(option, shared, dataclasses.field))
def estimator(kind: type[Kind]) -> type[Kind]:
    """Make a class an estimator: its fields become keyword arguments, and are listed in its documentation."""
    made = dataclasses.dataclass(kw_only=True, repr=False, eq=False)(kind)
    text, examples, rest = inspect.cleandoc(kind.__doc__ or "").partition("Examples\n--------\n")
    entries = [
        f"{name}\n" + textwrap.fill(found.help, WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 4)
        for name, _, found in options_of(kind)
    ]
    listed = "\n".join(["Parameters", "----------", *entries])
    made.__doc__ = f"{text.rstrip()}\n\n{listed}\n\n{examples}{rest}"
    return made


def values_of(kind: type, typed: Mapping[str, Any]) -> dict[str, Any]:
    """From what was typed on the command line to the arguments of a dataclass; what was not typed is left out."""
    values = {}
    for name, _, found in options_of(kind):
        if found.cli and typed.get(name) is not None:
            values[name] = found.parse(typed[name]) if found.parse is not None else typed[name]
    return values
