"""Drawings, by matplotlib, which comes with the extra `plots`."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lols.errors import ConfigurationError, LolsError

__all__ = ["check_plot", "confusion"]

ENDINGS = (".png", ".svg", ".pdf")
NUMBERED = 16  # classes up to which there are numbers in the cells
GAMMA = 0.6  # below 1, so that small shares can be told from none
DARK = 0.6  # colours from which on numbers are white
TICKS = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
LONGEST = 24  # characters of a class's name


def confusion(scores: Any, path: str | os.PathLike[str]) -> None:
    """Draw which classes were taken for which, as PNG, SVG or PDF by the ending of the path.

    Colours are shares of a row, so that rare classes show as well as frequent ones; the numbers are counts.

    >>> import tempfile; from lols.estimators.classifier_scores import scores_of_confusion
    >>> path = tempfile.mkdtemp() + "/mistakes.svg"
    >>> confusion(scores_of_confusion(["no", "yes"], np.array([[8, 1], [2, 5]]), None), path)
    >>> Path(path).read_text()[:5]
    '<?xml'
    """
    check_plot(path)
    classes = [_short(str(name)) for name in scores.classes]
    counts = np.asarray(scores.confusion)
    colours = (counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)) ** GAMMA
    size, longest = len(classes), max(map(len, classes))
    numbered = size <= NUMBERED
    cell = 0.85 if size <= 8 else 0.62 if numbered else max(0.16, 0.3 - 0.002 * size)  # inches
    font = 10 if size <= 8 else 8 if numbered else max(4.0, min(8.0, 60 * cell * 0.6))
    margin = 0.075 * longest * font / 10 + 0.75
    width, height = size * cell + margin + 1.1, size * cell + margin + 0.85
    with _figure(max(width, 4.6), height, path) as (figure, axes):
        image = axes.imshow(colours, cmap="Blues", vmin=0.0, vmax=1.0, aspect="equal")
        slanted = longest * font * 0.6 / 72 > cell
        axes.set_xticks(range(size), classes, fontsize=font, rotation=90 if slanted else 0)
        axes.set_yticks(range(size), classes, fontsize=font)
        axes.set_xlabel("predicted")
        axes.set_ylabel("true")
        axes.set_xticks(np.arange(1, size) - 0.5, minor=True)
        axes.set_yticks(np.arange(1, size) - 0.5, minor=True)
        axes.grid(which="minor", color="#dddddd", linewidth=0.6)
        axes.tick_params(which="both", length=0)
        axes.spines[:].set_color("#bbbbbb")
        axes.set_title(
            f"cost {scores.cost:.4f}, error {100 * scores.error:.2f} % on {scores.rows:,} rows", fontsize=11, pad=10
        )
        if numbered:
            _numbers(axes, counts, colours, cell, font)
        bar = figure.colorbar(image, ax=axes, fraction=0.046, pad=0.04, ticks=[share**GAMMA for share in TICKS])
        bar.ax.set_yticklabels([f"{100 * share:g} %" for share in TICKS], fontsize=8)
        bar.outline.set_visible(False)
        bar.ax.set_ylabel("share of the true class", fontsize=9)


def check_plot(path: str | os.PathLike[str]) -> None:
    """Say before the work that a drawing cannot be made."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise ConfigurationError(f"{path}: a drawing is .png, .svg or .pdf; name it so")
    if Path(path).is_dir() or not Path(path).parent.is_dir():
        raise ConfigurationError(f"{path}: cannot be written; name a file in a folder that is there")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ConfigurationError(
            "drawing needs matplotlib, which is not installed: pip install 'lols[plots]'"
        ) from None


def _numbers(axes: Any, counts: np.ndarray, colours: np.ndarray, cell: float, font: float) -> None:
    for (true, predicted), count in np.ndenumerate(counts):
        if count == 0:
            axes.text(predicted, true, "·", ha="center", va="center", color="#aaaaaa", fontsize=font)
            continue
        text = f"{count:,}"
        fits = min(font, cell * 72 * 0.92 / (0.58 * len(text)))
        colour = "white" if colours[true, predicted] > DARK else "#222222"
        axes.text(predicted, true, text, ha="center", va="center", color=colour, fontsize=fits)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


@contextlib.contextmanager
def _figure(width: float, height: float, path: str | os.PathLike[str]) -> Iterator[tuple[Any, Any]]:
    """A figure that is written in the end, as a whole or not at all; no window, no state."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    yield figure, figure.subplots()
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}  # the same drawing is the same file
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=f".{kind}", dir=path.parent)
        with os.fdopen(handle, "wb") as file, rc_context({"svg.hashsalt": "lols"}):
            os.chmod(temporary, 0o644)
            figure.savefig(file, format=kind, dpi=150, bbox_inches="tight", pad_inches=0.1, metadata=dates.get(kind))
        os.replace(temporary, path)
    except OSError as error:
        raise LolsError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
