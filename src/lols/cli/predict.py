"""`lols predict`: a file in, the same file with predictions out."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from lols.cli.base import MAKERS, Json, discard_output, print_json
from lols.cli.generate import built_command, optional, parameters_of, required
from lols.cli.task_file import TaskOption, check_alone, loaded
from lols.cli.verb import ModelArgument, Threads, VerbOptions, file_argument, settle, told_pieces
from lols.cli.workers import EngineOptions, engine_of
from lols.errors import ConfigurationError, LolsError
from lols.io.opening import compressing
from lols.io.whole_file import whole_file
from lols.tasks.verbs import silent

HELP = """Tag, parse or classify a file: the output is the input with the predicted columns replaced.

Comments, multi-word tokens, empty nodes and all other columns stay as they are, byte for byte. A table keeps its
format; if it has no column of labels, one for the classes is appended.
"""
Output = Annotated[
    str,
    typer.Option("--output", "-o", help="The file to write; - is standard output. .gz, .xz and .bz2 are compressed."),
]


def predict_command() -> Any:
    """`lols predict`, with the options of all estimators."""
    options = VerbOptions("predict")

    def predict(
        model: str,
        files: list[str],
        output: str,
        task: str | None,
        threads: int | None,
        as_json: bool,
        **typed: Any,
    ) -> None:
        from lols.io.conll import glance
        from lols.tasks.many_files import expanded
        from lols.training.clock import Clock

        if as_json and output == "-":
            raise ConfigurationError(
                "--json and the predictions cannot both go to standard output: name a file with -o"
            )
        clock, names = Clock(), expanded(files)
        if typed.get("format") is None and task is None:
            for name in names:
                glance(name)  # before the model is loaded, which may take long
        estimator = loaded(model, task)
        values = options.values(typed, estimator.VERBS)
        engine = engine_of(typed)
        if engine is not None or len(names) > 1:
            check_alone(task)
            _predict_many(model, names, output, engine, {"threads": threads or 1, **values}, as_json)
            return
        (file,) = names
        settle()
        say = silent if as_json else (lambda line: print(line, file=sys.stderr))
        with written(output) as out:
            facts = estimator.predict_file(file, out, output=output, threads=threads, say=say, **values)
        if as_json:
            seconds = {"seconds_compiling": clock.compiling(), "seconds_total": clock.total()}
            print_json({"output": output, **facts, **seconds})

    parameters = [
        required("model", ModelArgument),
        required(
            "files",
            file_argument("The input; - is standard input. Several files, or an engine: -o is a folder.", list[str]),
        ),
        optional("output", Output, "-"),
        *options.parameters(),
        *(each for each in parameters_of(EngineOptions) if each.name in ("engine", "workers", "address")),
        optional("task", TaskOption, None),
        optional("threads", Threads, None),
        optional("as_json", Json, False),
    ]
    return built_command("predict", parameters, predict, HELP)


def _predict_many(
    model: str, files: list[str], folder: str, engine: Any, values: dict[str, Any], as_json: bool
) -> None:
    """Predict many files into a folder."""
    from lols.engines import as_engine
    from lols.tasks.many_files import predict_many

    if folder == "-" or "-" in files or os.path.isfile(folder):
        raise ConfigurationError("several files, or an engine, need files and a folder: name one with -o")
    watch = (lambda file, pieces: None) if as_json else told_pieces()
    facts = predict_many(model, files, folder, as_engine(engine), watch=watch, **values)
    if as_json:
        print_json({"output": folder, **facts})


@contextlib.contextmanager
def written(output: str) -> Iterator[BinaryIO | Any]:
    """Standard output, or a file that is there as a whole or not at all."""
    if output == "-":
        try:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        except BrokenPipeError:  # the reader of the output has stopped reading
            discard_output()
            raise typer.Exit from None
        return
    path = Path(output)
    if os.path.isdir(path) or not os.path.isdir(path.parent):  # these never raise
        raise LolsError(f"{output}: cannot be written; name a file in an existing folder")
    with whole_file(path) as file, compressing(file, output) as stream:
        yield stream


MAKERS["predict"] = predict_command
