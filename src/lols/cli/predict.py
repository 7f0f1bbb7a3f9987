"""`lols predict`: a file in, the same file with predictions out."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from lols.cli.base import Json, app, print_json
from lols.cli.options import (
    AnyHeader,
    File,
    Format,
    LikeTraining,
    OneTable,
    Separator,
    TableLabel,
    Threads,
    UseLikeTraining,
    refuse,
    use_of,
)
from lols.errors import ConfigurationError, LolsError
from lols.training.clock import Clock


@app.command()
def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file.", show_default=False)],
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help=f"{File} - is standard input. {OneTable}", show_default=False),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help="The file to write; - is standard output. .gz is compressed.")
    ] = "-",
    column: LikeTraining = None,
    word: Annotated[str | None, typer.Option(help="The column of the words; as in training unless given.")] = None,
    use: UseLikeTraining = None,
    file_format: Format = None,
    header: AnyHeader = None,
    beam: Annotated[
        int | None, typer.Option(help="Of a parser: the width of a beam search; 1, the default, is greedy.")
    ] = None,
    label: TableLabel = None,
    separator: Separator = None,
    labels_only: Annotated[
        bool, typer.Option("--labels-only", help="Of a classifier: write the classes only, one a line.")
    ] = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Tag, parse or classify a file: what comes out is what went in, with the predicted columns replaced.

    Comments, multi-word tokens, empty nodes and all other columns stay as they are, byte for byte. A table keeps its
    format, and gets a column of its own for the classes if it has none of labels.
    """
    from lols.cli.prepare import prepare_classifying, settle
    from lols.front import load

    if as_json and output == "-":
        raise ConfigurationError("--json and the predictions cannot both go to standard output: name a file with -o")
    clock = Clock()
    estimator = load(model)
    if estimator.READS == "tables":
        from lols.cli.predict_classifier import predict_classifier

        refuse_for_tables(column, word, use, file_format, beam)
        prepare_classifying(estimator)
        settle()
        predict_classifier(
            estimator,
            file,
            output,
            _written,
            places=(label, header, separator),
            labels_only=labels_only,
            threads=threads or cores(),
            clock=clock,
            as_json=as_json,
        )
        return
    refuse({"--label": label, "--separator": separator, "--labels-only": labels_only}, "no classifier")
    set_beam(estimator, beam)
    columns = file_columns(estimator, word, column, use, file_format, header)
    settle()
    work = Clock()
    tokens = 0
    with _written(output) as out:
        for data, count in estimator.predict_pieces(file, columns, threads=threads or cores()):
            out.write(data)
            tokens += count
    if as_json:
        print_json(
            {
                "output": output,
                "tokens": tokens,
                "seconds_compiling": clock.compiling(),
                "seconds_total": clock.total(),
                "tokens_per_second": tokens / work.working(),
            }
        )


def file_columns(
    estimator: Any,
    word: str | None,
    column: str | None,
    use: list[str] | None,
    file_format: str | None,
    header: bool | None,
) -> Any:
    """Where things are in a file: as the options say, else as in training."""
    known = estimator.file_columns
    given = {"word": word, "label": column, "use": use_of(use), "header": header, "format": file_format}
    made = {k: v for k, v in given.items() if v is not None}
    if "label" in made and not hasattr(known, "label"):
        raise ConfigurationError("--column has no effect: the model is no tagger, and writes heads and relations")
    trained = {}
    if hasattr(known, "trained"):
        trained = {"trained": None if {"word", "label", "use"} & set(made) else known.trained}
    return replace(known, **{"format": None, "header": None} | trained | made)


def set_beam(estimator: Any, beam: int | None) -> None:
    """Search with a beam, if that was asked for."""
    if beam is None:
        return
    parser = getattr(estimator, "parser_", estimator)
    if "beam" not in parser.get_params():
        raise ConfigurationError("--beam has no effect: the model is no parser")
    if beam < 1:
        raise ConfigurationError(f"--beam is {beam}; it must be at least 1")
    parser.set_params(beam=beam)


def refuse_for_tables(
    column: str | None, word: str | None, use: list[str] | None, file_format: str | None, beam: int | None
) -> None:
    """A classifier's tables have other options."""
    if column is not None:
        raise ConfigurationError("--column has no effect: the model is a classifier; name the labels with --label")
    refuse({"--word": word, "--use": use, "--format": file_format, "--beam": beam}, "a classifier")


def cores() -> int:
    """How many cores there are for us."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def _written(output: str) -> Iterator[BinaryIO | Any]:
    """Standard output, or a file that is there as a whole or not at all."""
    if output == "-":
        try:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        except BrokenPipeError:  # whoever read the output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit from None
        return
    path = Path(output)
    temporary = ""
    try:
        if path.is_dir() or not path.parent.is_dir():
            raise LolsError(f"{output}: cannot be written; name a file in a folder that is there")
        if path.exists() and not path.is_file():  # such as /dev/null
            with open(path, "wb") as special:
                yield special
            return
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, 0o666 & ~_umask())
            if path.suffix == ".gz":
                import gzip

                with gzip.GzipFile(path.stem, "wb", fileobj=file, mtime=0) as zipped:
                    yield zipped
            else:
                yield file
        os.replace(temporary, path)
    except OSError as error:
        raise LolsError(f"{output}: cannot be written: {error.strerror or error}") from error
    finally:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
