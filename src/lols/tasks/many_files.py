"""Prediction and evaluation over many files by the workers of an engine: in order, with a bound on what is read ahead.

Files of tokens are cut between sentences into pieces, so that one large file is shared, too; others are pieces as they
are. Results are written by the driver, in order, so that workers need no common disk for them.
"""

from __future__ import annotations

import contextlib
import glob
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from lols.engines import Engine, SharedValue, Workers
from lols.errors import ConfigurationError, LolsError
from lols.io.opening import compressing, opened
from lols.io.whole_file import whole_file
from lols.tasks.registry import read_model
from lols.tasks.verbs import TOKENS, Evaluation

PIECE = 1 << 20  # bytes
PACKED = (".gz", ".xz", ".bz2")


class Piece(NamedTuple):
    """A part of a file."""

    model: SharedValue  # the content of a model file
    file: str
    line: int  # at which it begins
    data: bytes | None  # None for the whole file, which the worker reads itself
    options: dict[str, Any]


_LOADED: tuple[bytes, Any] | None = None


def loaded(content: bytes) -> Any:
    """The estimator in a model file, which is kept."""
    global _LOADED
    if _LOADED is None or _LOADED[0] != content:
        with tempfile.NamedTemporaryFile(suffix=".lols") as file:
            file.write(content)
            file.flush()
            _LOADED = content, read_model(file.name).load()
    return _LOADED[1]


def predict_piece(piece: Piece) -> tuple[bytes, dict[str, Any]]:
    """The piece with predictions, and facts about it."""
    estimator, out = loaded(piece.model.get()), BytesIO()
    with in_file(piece) as path:
        facts = estimator.predict_file(path, out, **piece.options)
    return out.getvalue(), facts


def evaluate_piece(piece: Piece) -> Evaluation | None:
    """The scores of a piece; None if it has no sentences."""
    if piece.data is not None and not any(
        line.strip() and not line.startswith(b"#") for line in piece.data.splitlines()
    ):
        return None
    with in_file(piece) as path:
        evaluation: Evaluation = loaded(piece.model.get()).evaluate_file(path, **piece.options)
    return evaluation


@contextlib.contextmanager
def in_file(piece: Piece) -> Iterator[str]:
    """A file that holds a piece; errors that name it name the file that the piece is from."""
    if piece.data is None:
        yield piece.file
        return
    suffix = Path(piece.file.removesuffix(next((s for s in PACKED if piece.file.endswith(s)), ""))).suffix
    with tempfile.NamedTemporaryFile(suffix=suffix) as file:
        file.write(piece.data)
        file.flush()
        try:
            yield file.name
        except LolsError as error:
            place = f"{piece.file} (counted from line {piece.line} on)"
            raise type(error)(str(error).replace(file.name, place)) from None


def expanded(patterns: Iterable[str]) -> list[str]:
    """The files that names and patterns stand for, in order.

    >>> expanded(["/nowhere/part-*.conllu"])
    Traceback (most recent call last):
        ...
    lols.errors.LolsError: /nowhere/part-*.conllu: no file has such a name
    """
    files: list[str] = []
    for pattern in patterns:
        names = sorted(glob.glob(pattern)) if glob.has_magic(pattern) and not os.path.exists(pattern) else [pattern]
        if not names:
            raise LolsError(f"{pattern}: no file has such a name")
        files += names
    return files


def predict_many(
    model: str,
    files: Sequence[str],
    folder: str,
    engine: Engine,
    *,
    watch: Callable[[str, int], None] = lambda file, pieces: None,
    **options: Any,
) -> dict[str, Any]:
    """Write each file with its predictions into a folder, under the same name; returns facts about all of them.

    `watch` is called with the file and the number of its pieces that are done. At most a few pieces for each worker
    are in memory.
    """
    names = [Path(file).name for file in files]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise ConfigurationError(f"two of the files are called {double}: their predictions would be the same file")
    Path(folder).mkdir(parents=True, exist_ok=True)
    began, total = time.perf_counter(), 0
    with engine.start() as workers, contextlib.ExitStack() as stack:
        begun: list[str] = []  # the file of each piece, in order
        current, out, done = "", None, 0
        for data, facts in workers.map(predict_piece, pieces_of(workers, model, files, options, begun)):
            file = begun.pop(0)
            if file != current:
                stack.close()
                current, done = file, 0
                target = Path(folder) / Path(file).name
                out = stack.enter_context(compressing(stack.enter_context(whole_file(target)), str(target)))
            assert out is not None
            out.write(data)
            total += next((int(facts[k]) for k in ("tokens", "rows", "examples") if k in facts), 0)
            done += 1
            watch(current, done)
    seconds = time.perf_counter() - began
    return {"files": len(files), "count": total, "seconds_total": seconds, "per_second": total / max(seconds, 1e-9)}


def evaluate_many(
    model: str,
    files: Sequence[str],
    engine: Engine,
    *,
    watch: Callable[[str, int], None] = lambda file, pieces: None,
    **options: Any,
) -> Evaluation:
    """The scores of a model on all files together."""
    parts: list[Evaluation] = []
    done: Counter[str] = Counter()
    with engine.start() as workers:
        begun: list[str] = []
        for each in workers.map(evaluate_piece, pieces_of(workers, model, files, options, begun)):
            parts += [] if each is None else [each]
            file = begun.pop(0)
            done[file] += 1
            watch(file, done[file])
    if not parts:
        raise LolsError(f"{files[0]}: there is nothing to evaluate on")
    kind: Any = type(parts[0].scores)
    scores = kind.of_parts([each.scores for each in parts])
    return Evaluation(scores, sum(each.count for each in parts), sum(each.seconds_reading for each in parts))


def pieces_of(
    workers: Workers, model: str, files: Sequence[str], options: dict[str, Any], begun: list[str]
) -> Iterator[Piece]:
    """The pieces of all files; the file of each is added to `begun`."""
    stored, shared = read_model(model), workers.share(Path(model).read_bytes())
    cut = stored.verbs is not None and stored.verbs.counted is TOKENS
    for file in files:
        for line, data in sentences(file) if cut else [(1, None)]:
            begun.append(file)
            yield Piece(shared, file, line, data, options)


def sentences(path: str, size: int | None = None) -> Iterator[tuple[int, bytes]]:
    """A file of tokens in pieces of about this size, each of whole sentences, with the line at which it begins."""
    with opened(path) as stream:
        left, line, first, size = b"", 1, True, size or PIECE
        while True:
            data = stream.read(size)
            left += data
            end = len(left) if not data else max(left.rfind(b"\n\n") + 2, left.rfind(b"\n\r\n") + 3)
            if end >= 3 or not data:
                piece, left = left[:end], left[end:]
                if piece or first:
                    yield line, piece
                    line, first = line + piece.count(b"\n"), False
            if not data:
                return


class Predictor:
    """For `ray.data`: `dataset.map_batches(Predictor, fn_constructor_args=("pos.lols", "words"), concurrency=8)`.

    It holds the model once for each worker. A batch is a dictionary of columns; the predictions for the objects in
    column `column` are added as column `to`.

    Parameters
    ----------
    model
        The model file.
    column
        The column with the inputs, as `predict` of the estimator takes them: for a tagger lists of words.
    to
        The name of the column for predictions.

    """

    def __init__(self, model: str, column: str, to: str = "predicted"):
        self.estimator, self.column, self.to = read_model(model).load(), column, to

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        import numpy as np

        given = [list(each) if isinstance(each, np.ndarray) else each for each in batch[self.column]]
        outputs = self.estimator.predict(given)
        cells = np.empty(len(outputs), object)
        cells[:] = outputs
        return {**batch, self.to: cells}
