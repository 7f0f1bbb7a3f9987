"""The files of `lols reproduce --html` and `--plots`: one self-contained page, and pictures."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lols.errors import ConfigurationError
from lols.io.whole_file import write_whole
from lols.plots.look import ENDINGS, inline_svg, save
from lols.reproduction.describe import describe
from lols.reproduction.document import Chart, TextCell
from lols.reproduction.paper import CITATION
from lols.tasks.pages import render
from lols.training.progress import duration

HEADING = "Learning to search better than your teacher, reproduced"
LINK = "https://proceedings.mlr.press/v37/changb15.html"


def write_report(result: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the page of a result, as a whole or not at all.

    The result is what `lols reproduce --json` writes; missing parts are left out. Its part `certificates` may have more
    of what `lols certify --json` prints, by name.

    Parameters
    ----------
    result
        What `lols reproduce --json` writes.
    path
        The page to write.

    Examples
    --------
    >>> import tempfile; path = tempfile.mkdtemp() + "/report.html"
    >>> write_report({"version": "0.1.0", "command": "lols reproduce table3", "tables": {}, "claims": []}, path)
    >>> "lols reproduce table3" in Path(path).read_text(encoding="utf-8")
    True

    """
    write_whole(path, report_page(result).encode("utf-8"))


def report_page(result: Mapping[str, Any]) -> str:
    """The page as text; the same result gives the same page."""
    return render(
        Path(__file__).parent / "templates" / "report.html.j2",
        heading=HEADING,
        citation=CITATION,
        link=LINK,
        result=result,
        data=dict.fromkeys((result.get("data") or {}).values()),
        duration=duration,
        sections=describe(result),
        chart_svg=_chart_svg,
        as_cell=lambda cell: cell if isinstance(cell, TextCell) else TextCell(cell),
    )


def _chart_svg(chart: Chart) -> str:
    return inline_svg(chart.draw(), "".join(c if c.isalnum() else "-" for c in chart.name))


def write_plots(result: Mapping[str, Any], folder: str | os.PathLike[str], ending: str = ".png") -> list[Path]:
    """Write all pictures of a result into an existing folder, and return their paths.

    The ending is `.png`, `.svg` or `.pdf`.

    Parameters
    ----------
    result
        What `lols reproduce --json` writes.
    folder
        An existing folder.
    ending
        `.png`, `.svg` or `.pdf`.

    Examples
    --------
    >>> import tempfile
    >>> slope = {"value": -0.5, "height": 1.0, "low": -0.5, "high": -0.5}
    >>> regret = {"rounds": [100, 400], "values": [[0.1], [0.05]], "slope": slope, "bound": -1 / 3}
    >>> [path.name for path in write_plots({"bandit": {"regret": regret}}, tempfile.mkdtemp(), ".svg")]
    ['bandit-regret.svg']

    """
    if ending not in ENDINGS:
        raise ConfigurationError(f"ending is {ending!r}: take one of {', '.join(ENDINGS)}")
    charts = [chart for section in describe(result) for figure in section.figures for chart in figure.charts]
    for chart in charts:
        save(chart.draw(), Path(folder) / f"{chart.name}{ending}")
    return [Path(folder) / f"{chart.name}{ending}" for chart in charts]
