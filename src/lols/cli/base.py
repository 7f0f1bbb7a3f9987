"""The application: `lols` itself, errors as one line, and what the commands share."""

from __future__ import annotations

import contextlib
import difflib
import errno
import json
import os
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from lols._version import __version__
from lols.errors import ConfigurationError, LolsError, lines_of, short

if TYPE_CHECKING:
    from lols.tasks.verbs import VerbReport


import codecs
import io

SPELLING = "lols.spelling"  # the name of the error handler
# What cannot be encoded is written so; in tables, where width matters, a character for a character.
SPELLED = {
    "α": "alpha", "β": "beta", "δ": "delta", "ε": "epsilon", "π": "pi", "Γ": "Gamma", "Π": "Pi", "Σ": "Sigma",
    "→": ">", "↑": "^", "−": "-", "–": "-", "—": "-", "…": ".", "·": ".", "±": "+", "×": "x", "√": "sqrt ",
    "≈": "~", "≥": ">=", "∈": "in", "²": "^2", "✓": "+", "✗": "x", "●": "o", "○": ".", "◐": "o", "◑": "o", "◔": "o",
    "─": "-", "━": "-", "┄": "-", "│": "|", "┃": "|", "└": "`", "├": "|", "█": "#", "╸": "-", "╺": "-",
    "‘": "'", "’": "'", "“": '"', "”": '"',
}  # fmt: skip
BRAILLE, END = "\u2800", "\u28ff"  # the dots of pictures


def spelled(text: str) -> str:
    r"""A text in ASCII.

    >>> spelled("β → 1"), spelled("Müller"), spelled("⠀⣀")
    ('beta > 1', 'M\\xfcller', ' :')
    """
    return "".join(_spelled(character) for character in text)


def _spelled(character: str) -> str:
    if BRAILLE <= character <= END:
        return " " if character == BRAILLE else ":"
    return SPELLED.get(character) or character.encode("ascii", "backslashreplace").decode()


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return spelled(error.object[error.start : error.end]), error.end


codecs.register_error(SPELLING, _spell)


class Closed(io.RawIOBase):
    """A stream that was closed before the command began: reading and writing fail."""

    def readable(self) -> bool:
        """It can be asked to read."""
        return True

    def writable(self) -> bool:
        """It can be asked to write."""
        return True

    def readinto(self, _buffer: Any) -> NoReturn:
        """Fail."""
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def write(self, _data: Any) -> NoReturn:
        """Fail."""
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def prepare_streams() -> None:
    """Replace streams that are closed, and let the others take every character.

    Python has None for a stream that is closed. What would be written to standard error is then lost; the others fail
    when they are used, as those of other programs do. Their numbers are taken, or the next file would have them.
    """
    for number in (0, 1, 2):
        with contextlib.suppress(OSError):
            os.fstat(number)
            continue
        with contextlib.suppress(OSError):
            os.open(os.devnull, os.O_RDWR)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(Closed()))
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(Closed(), write_through=True)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors != "replace":
            stream.reconfigure(errors=SPELLING)


# The commands in the order in which `lols --help` lists them; each is in the module of its name.
COMMANDS = (
    "train",
    "predict",
    "evaluate",
    "calibrate",
    "inspect",
    "explain",
    "certify",
    "optimise",
    "bandit",
    "new-task",
    "reproduce",
    "warmup",
)

# Errors of writing: where files are written, they come with a name.
OF_WRITING = (errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG, errno.EDQUOT)

MAKERS: dict[str, Callable[[], Any]] = {}  # of commands whose options depend on the registry


class Commands(TyperGroup):
    """Commands, by name; one that is not there is a mistake, and those that are there are named."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first argument names."""
        if not ctx.resilient_parsing and args and args[0][:1] != "-" and self.get_command(ctx, args[0]) is None:
            known = self.list_commands(ctx)
            close = difflib.get_close_matches(args[0], known, 1)
            meant = f"did you mean {close[0]}?" if close else f"choose {', '.join(known)}"
            group = "lols" if ctx.parent is None else f"lols {ctx.info_name}"
            raise ConfigurationError(f"there is no command '{group} {short(args[0])}': {meant}")
        return super().resolve_command(ctx, args)


class LazyCommands(Commands):
    """The commands; those of `MAKERS` are built when they are asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands in the order of `COMMANDS`."""
        known = [*MAKERS, *super().list_commands(ctx)]
        return sorted(known, key=COMMANDS.index)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name."""
        return MAKERS[cmd_name]() if cmd_name in MAKERS else super().get_command(ctx, cmd_name)


app = typer.Typer(
    cls=LazyCommands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def option(help: str, *names: str, **more: Any) -> Any:
    """An option without a default in `--help`, because its text says what it is."""
    return typer.Option(*names, help=help, show_default=False, **more)


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def main() -> None:
    """Run the command line; what is the input's fault, or that of a disk, becomes one line and exit code 2."""
    prepare_streams()
    try:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _warn  # type: ignore[assignment]
                app()
        finally:
            sys.stdout.flush()
    except LolsError as error:
        fail(str(error))
    except BrokenPipeError:  # the reader of the output has stopped reading
        discard_output()
        sys.exit(1)
    except OSError as error:
        discard_output()
        where = error.filename or ("standard output" if error.errno in OF_WRITING else "the system")
        fail(f"{where}: {error.strerror or lines_of(error)[0]}")


def fail(line: str) -> NoReturn:
    """Say in one line what is wrong, and end with exit code 2."""
    with contextlib.suppress(OSError):
        print("lols:", " ".join(line.split()), file=sys.stderr)
    sys.exit(2)


def discard_output() -> None:
    """Forget what standard output could not take, or Python would try again at the end."""
    with contextlib.suppress(OSError, AttributeError):  # it may be closed, or have no number in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _warn(message: Warning | str, category: type[Warning], filename: str, lineno: int, *more: Any) -> None:
    """Print a warning for users as one line, without the place in the code."""
    if issubclass(category, UserWarning):
        print("lols: warning:", " ".join(str(message).split()), file=sys.stderr)
    else:
        print(warnings.formatwarning(message, category, filename, lineno), end="", file=sys.stderr)


def report(made: VerbReport, before: dict[str, Any], as_json: bool, after: dict[str, Any] | None = None) -> None:
    """Print what a verb returned, as text, or as JSON with further values."""
    if as_json:
        print_json(before | made.as_dict() | (after or {}))
        return
    from lols.cli.console import say

    made.show(say)


def print_json(values: dict[str, Any]) -> None:
    """One JSON object on standard output."""
    print(json.dumps(values))


def _version(wanted: bool) -> None:
    if wanted:
        print(f"lols {__version__}")
        raise typer.Exit


@app.callback()
def lols(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Learning to search: fast policies for dependent decisions, which may end up better than their teacher."""
