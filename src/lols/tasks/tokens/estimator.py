"""What taggers and parsers share: templates, and roll-outs of a few actions only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lols.errors import ConfigurationError
from lols.tasks.options import INPUT, SEARCH, estimator, option
from lols.tasks.search import SearchEstimator

__all__ = ["TokenEstimator"]


def read_templates(path: str) -> list[str]:
    """The lines of a file of templates."""
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read ({error}); give a text file of templates") from None


@estimator
class TokenEstimator(SearchEstimator):
    """An estimator on sentences, whose features are written as templates."""

    templates: Sequence[str] | str | None = option(
        default=None,
        help="Lines of the template language, in place of the default templates.",
        panel=INPUT,
        typed="A file of templates, one per line, in place of the default ones.",
        kind=str | None,
        parse=read_templates,
    )
    more_templates: Sequence[str] | None = option(
        default=None,
        help="Further templates, such as 'word[-1] & word' for a tagger or 'S0.upos & N0.upos' for a parser.",
        panel=INPUT,
        flag="--template",
        typed="A further template, such as 'word[-1] & word' or 'S0.upos & N0.upos'; may be repeated.",
        kind=list[str] | None,
    )
    prune: int | str | None = option(
        default="auto",
        help="Roll out only this many actions that the learner prefers, and the reference's; None rolls out all, as in "
        "Algorithm 1. auto is 2 with the optimal reference and the hinge, else None.",
        panel=SEARCH,
        typed="Roll out only this many actions that the learner prefers, and the reference's; 0 for all, as in "
        "Algorithm 1. By default 2 with the optimal reference and the hinge, else all.",
        kind=int | None,
        initial=None,
        parse=lambda count: count or None,
    )

    def template_lines(self) -> dict[str, Any]:
        """The templates as a task takes them: lines or None for the default ones, and further lines."""
        lines = self.templates.splitlines() if isinstance(self.templates, str) else self.templates
        return {"templates": lines, "more_templates": self.more_templates or ()}
