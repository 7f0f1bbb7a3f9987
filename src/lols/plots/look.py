"""The look that all drawings share, and what becomes of them: PNG, SVG and PDF files, or SVG inside a page."""

from __future__ import annotations

import functools
import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec

from lols.errors import ConfigurationError, LolsError
from lols.io.whole_file import write_whole

P = ParamSpec("P")
ENDINGS = (".png", ".svg", ".pdf")
# Colours that people with colour blindness can tell apart; on pages they are CSS variables, for light and dark.
BLUE, ORANGE, GREEN, PURPLE, GREY, GOLD = "#0b62a8", "#c2570c", "#00755a", "#8b3f92", "#5d666e", "#8a6d00"
TEXT, SOFT, LINE, EDGE = "#1d2126", "#667079", "#c4cad0", "#e3e6e9"
VARIABLES = {
    BLUE: "k0", ORANGE: "k1", GREEN: "k2", PURPLE: "k3", GREY: "k4", GOLD: "k5",
    TEXT: "text", SOFT: "soft", LINE: "line", EDGE: "edge",
}  # fmt: skip
SERIES: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "marker": "o", "linewidth": 2.4},
    {"color": ORANGE, "marker": "s", "linestyle": (0, (5, 2)), "linewidth": 1.6},
    {"color": GREEN, "marker": "^", "linestyle": (0, (2, 2)), "linewidth": 1.6},
    {"color": PURPLE, "marker": "D", "linestyle": (0, (6, 2, 1, 2)), "linewidth": 1.6},
    {"color": GREY, "marker": "v", "linestyle": (0, (1, 1.5)), "linewidth": 1.6},
    {"color": GOLD, "marker": "x", "linewidth": 1.6},
)
"""The styles of lines: no two differ by colour alone."""

LOOK: dict[Any, Any] = {
    "text.color": TEXT, "axes.labelcolor": SOFT, "xtick.color": SOFT, "ytick.color": SOFT, "axes.edgecolor": LINE,
    "axes.grid": True, "axes.grid.axis": "y", "grid.color": EDGE, "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlesize": 11, "axes.titlelocation": "left", "figure.titlesize": 11,
    "legend.frameon": False, "legend.fontsize": 9, "text.parse_math": False, "svg.hashsalt": "lols",
}  # fmt: skip


def drawing(draw: Callable[P, Any]) -> Callable[P, Any]:
    """Let a function that returns a matplotlib figure draw in the common look."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Any:
        check_matplotlib()
        from matplotlib import rc_context

        with rc_context(LOOK):
            return draw(*args, **kwargs)

    return drawn


def new_figure(width: float, height: float) -> Any:
    """An empty figure of a size in inches; no window, no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def band(axes: Any, x: Any, low: Any, high: Any, colour: str) -> None:
    """Shade what lies between two curves."""
    axes.fill_between(x, low, high, color=colour, alpha=0.16, linewidth=0)


def save(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a figure, as PNG, SVG or PDF by the ending of the path; the same figure gives the same file."""
    check_plot(path)
    write_whole(path, _rendered(figure, Path(path).suffix.lower().removeprefix(".")))


def inline_svg(figure: Any, name: str) -> str:
    """A figure as SVG to be put into a page: text stays text, colours are the page's variables.

    `name` is unique on the page: it begins all ids of the drawing, and only ids that are referred to stay.
    """
    svg = _rendered(figure, "svg", for_page=True).decode("utf-8")
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.S)
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', svg))
    svg = re.sub(r' id="([^"]+)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(r'(href="|url\()#', rf"\g<1>#{name}-", svg)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var(--{variable})")
    return re.sub(r"\n\s*", "\n", svg).strip()


def _rendered(figure: Any, kind: str, *, for_page: bool = False) -> bytes:
    from matplotlib import rc_context

    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    content = io.BytesIO()
    with rc_context(LOOK | ({"svg.fonttype": "none"} if for_page else {})):
        figure.savefig(
            content, format=kind, dpi=150, bbox_inches="tight", pad_inches=0.1, metadata=dates.get(kind),
            transparent=for_page,
        )  # fmt: skip
    return content.getvalue()


def check_plot(path: str | os.PathLike[str]) -> None:
    """Raise an error, before the work, if a drawing could not be written.

    Parameters
    ----------
    path
        Where a drawing is to be written.

    """
    if Path(path).suffix.lower() not in ENDINGS:
        raise ConfigurationError(f"{path}: a drawing is .png, .svg or .pdf; name it so")
    if Path(path).is_dir() or not Path(path).parent.is_dir():
        raise ConfigurationError(f"{path}: cannot be written; name a file in an existing folder")
    check_matplotlib()


def check_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder for drawings if it is missing; raise an error, before the work, if they could not be written."""
    target = Path(path)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LolsError(f"{target}: cannot be made a folder ({error.strerror}); name another") from None
    check_plot(target / "drawing.png")


def check_matplotlib() -> None:
    """Raise an error that says how to install matplotlib if it is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ConfigurationError(
            "drawing needs matplotlib, which is not installed: pip install 'lols[plots]'"
        ) from None


def shortened(name: str, longest: int = 24) -> str:
    """A name cut to a number of characters.

    >>> shortened("a-long-name", 7)
    'a-long…'
    """
    return name if len(name) <= longest else name[: longest - 1] + "…"
