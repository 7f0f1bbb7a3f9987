"""Drawings, by matplotlib, which comes with the extra `plots`."""

from __future__ import annotations

import contextlib
import importlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lols.errors import ConfigurationError, LolsError

if TYPE_CHECKING:
    from lols.plots.certificates import regret_plot
    from lols.reproduction.plots import beta_sweep, heat_map, learning_curves, regret_slope, write_plots
    from lols.reproduction.plots_theory import gap_curves, snake_growth, tightness

__all__ = [
    "bandit_curves",
    "beta_sweep",
    "check_plot",
    "confusion",
    "gap_curves",
    "heat_map",
    "learning_curves",
    "regret_plot",
    "regret_slope",
    "snake_growth",
    "tightness",
    "write_plots",
]

# Drawings that live in files of their own, which are loaded when one of them is asked for.
_HOME = {
    **dict.fromkeys(("beta_sweep", "heat_map", "learning_curves", "regret_slope", "write_plots"), "reproduction.plots"),
    **dict.fromkeys(("gap_curves", "snake_growth", "tightness"), "reproduction.plots_theory"),
    "regret_plot": "plots.certificates",
}

ENDINGS = (".png", ".svg", ".pdf")
NUMBERED = 16  # classes up to which there are numbers in the cells
GAMMA = 0.6  # below 1, so that small shares can be told from none
DARK = 0.6  # colours from which on numbers are white
TICKS = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
LONGEST = 24  # characters of a class's name
APART = 0.055  # of the height of a picture: from one label beside it to the next
SQUASHED = 0.45  # the share of the height that a line far from all others may take
BLUE, GREY, GREEN, RED = "#1f5fa8", "#555555", "#2b7a3d", "#a8431f"


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lols.plots' has no attribute '{name}'")
    return getattr(importlib.import_module(f"lols.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)


def confusion(scores: Any, path: str | os.PathLike[str]) -> None:
    """Draw which classes were taken for which, as PNG, SVG or PDF by the ending of the path.

    Colours are shares of a row, so that rare classes show as well as frequent ones; the numbers are counts.

    >>> import tempfile; from lols.tasks.tables.scores import scores_of_confusion
    >>> path = tempfile.mkdtemp() + "/mistakes.svg"
    >>> confusion(scores_of_confusion(["no", "yes"], np.array([[8, 1], [2, 5]]), None), path)
    >>> Path(path).read_text()[:5]
    '<?xml'
    """
    check_plot(path)
    classes = [short(str(name)) for name in scores.classes]
    counts = np.asarray(scores.confusion)
    colours = (counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)) ** GAMMA
    size, longest = len(classes), max(map(len, classes))
    numbered = size <= NUMBERED
    cell = 0.85 if size <= 8 else 0.62 if numbered else max(0.16, 0.3 - 0.002 * size)  # inches
    font = 10 if size <= 8 else 8 if numbered else max(4.0, min(8.0, 60 * cell * 0.6))
    margin = 0.075 * longest * font / 10 + 0.75
    width, height = size * cell + margin + 1.1, size * cell + margin + 0.85
    with drawing(max(width, 4.6), height, path) as (figure, axes):
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


def bandit_curves(result: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Draw how a bandit's loss went down, as PNG, SVG or PDF by the ending of the path.

    The result is what `lols.bandit.worlds.outcome.summarise` gives, and `lols bandit simulate --json` prints: losses in
    windows of rounds, with bands over seeds (95 % intervals of the mean), beside the rules and what else there is.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/bandit.svg"
    >>> curve = {"rounds": [10, 20], "loss": [0.7, 0.6], "loss_interval": [0.1, 0.1]}
    >>> bandit_curves({"world": "layout", "rounds": 20, "seeds": [0, 1], "curve": curve, "reference_loss": 0.65}, path)
    >>> Path(path).read_text()[:5]
    '<?xml'
    """
    check_plot(path)
    curve, rounds = result["curve"], result["rounds"]
    ends = np.array(curve["rounds"])
    middles = (np.concatenate([[0], ends[:-1]]) + ends) / 2
    loss, band = np.array(curve["loss"]), np.array(curve["loss_interval"])
    of_rounds = _known(result, [("random", "random_loss", GREY), ("rules", "reference_loss", RED)])
    held_out = _known(
        result,
        [
            ("rules", "held_out_reference_loss", RED),
            ("final policy", "policy_loss", BLUE),
            ("full information", "full_information_loss", GREEN),
            ("optimum", "optimum_loss", GREY),
        ],
    )
    lowest, highest = float((loss - band).min()), float((loss + band).max())
    levels = [lowest, highest, *(line.value for line in (*of_rounds, *held_out) if line.name != "random")]
    apart = [k for k in of_rounds if k.value - max(levels) > SQUASHED * (k.value - min(levels))]
    with drawing(9.6, 4.6, path) as (figure, axes):
        axes.remove()
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=[5, 1])
        left.fill_between(middles, loss - band, loss + band, color=BLUE, alpha=0.2, linewidth=0)
        left.plot(middles, loss, color=BLUE, linewidth=1.8)
        for line in of_rounds:
            if line not in apart:
                left.axhline(line.value, color=line.colour, linewidth=1.2, zorder=1.5)
        for line in held_out:
            if line.name not in ("rules", "final policy"):
                left.axhline(line.value, color=line.colour, linewidth=1.0, linestyle=(0, (4, 4)), alpha=0.6)
            right.errorbar(
                [0], [line.value], [[line.spread], [line.spread]], color=line.colour, capsize=4, linewidth=1.2
            )
            right.plot([-0.3, 0.3], [line.value] * 2, color=line.colour, linewidth=2.4, solid_capstyle="butt")
        left.set_xlim(0, rounds)
        right.set_xlim(-0.5, 0.5)
        left.margins(y=0.08)
        final = result.get("final_loss", float(loss[-1]))
        ending = [Line("bandit", float(loss[-1]), BLUE, 0.0, final), *(line for line in of_rounds if line not in apart)]
        _beside(left, ending)
        _beside(right, held_out)
        left.set_xlabel("rounds")
        left.set_ylabel("loss, mean of a window")
        left.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        right.set_xticks([])
        right.set_xlabel("held out")
        for one in (left, right):
            one.grid(axis="y", color="#ececec", linewidth=0.8)
            one.set_axisbelow(True)
            one.spines[["top", "right"]].set_visible(False)
            one.spines[["left", "bottom"]].set_color("#bbbbbb")
        right.spines["left"].set_visible(False)
        right.tick_params(left=False, labelleft=False)
        left.set_title(_heading(result), fontsize=11, pad=12, loc="left")
        for line in apart:
            text = f"{line.name} {line.value:.3f} ↑"
            left.text(0.995, 0.985, text, transform=left.transAxes, ha="right", va="top", fontsize=9, color=line.colour)


class Line(NamedTuple):
    """A loss to compare with: its label, height, colour, half the width of its interval, and the number to print."""

    name: str
    value: float
    colour: str
    spread: float
    printed: float


def _known(result: Mapping[str, Any], wanted: list[tuple[str, str, str]]) -> list[Line]:
    spreads = result.get("intervals") or {}
    return [
        Line(name, result[key], colour, spreads.get(key) or 0.0, result[key])
        for name, key, colour in wanted
        if result.get(key) is not None
    ]


def _heading(result: Mapping[str, Any]) -> str:
    seeds = len(result["seeds"])
    made = f"{result['world']}: {result['rounds']:,} rounds" + (f", {seeds} seeds" if seeds > 1 else "")
    closed = result.get("gap_closed")
    if closed is not None and closed <= 0.0:
        made += "; the final policy is no better than the rules"
    elif closed is not None:
        spread = (result.get("intervals") or {}).get("gap_closed")
        more = "" if spread is None else f" ± {100 * spread:.0f}"
        made += f"; {100 * closed:.0f}{more} % of the way from the rules to full information"
    return made


def _beside(axes: Any, lines: list[Line]) -> None:
    """Labels at the right edge, each at its height, or as near to it as the others let it."""
    low, high = axes.get_ylim()
    lines = sorted(lines, key=lambda line: line.value)
    heights = [(line.value - low) / (high - low) for line in lines]
    for _ in range(200):  # neighbours push each other apart
        for k in range(len(heights) - 1):
            lacking = APART - (heights[k + 1] - heights[k])
            if lacking > 1e-6:
                heights[k], heights[k + 1] = heights[k] - lacking / 2, heights[k + 1] + lacking / 2
    for height, line in zip(heights, lines):
        text = f"{line.name} {line.printed:.3f}"
        place = {"xycoords": "axes fraction", "textcoords": "offset points", "annotation_clip": False}
        axes.annotate(text, (1.0, height), (8, 0), va="center", color=line.colour, fontsize=9, **place)


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


def short(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


@contextlib.contextmanager
def drawing(width: float, height: float, path: str | os.PathLike[str]) -> Iterator[tuple[Any, Any]]:
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
