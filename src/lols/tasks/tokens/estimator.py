"""What taggers and parsers share: templates, roll-outs of a few actions only, and what a model file keeps of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from lols.errors import ConfigurationError, LolsError, ModelFileError
from lols.io.room import Room
from lols.tasks.options import INPUT, SEARCH, estimator, option
from lols.tasks.search import SearchEstimator
from lols.tasks.tokens.input import check_options, string_tensors, strings_of
from lols.training.model import make_model

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

    # --- files ---

    Task: ClassVar[Any]  # the class of the task, which a model file describes

    def stored_strings(self) -> dict[str, np.ndarray]:
        """The vocabulary and the values of further columns, as arrays of a model file."""
        tensors = string_tensors("vocabulary", self.vocabulary_)
        for name, values in self.column_values_.items():
            tensors |= string_tensors(f"column.{name}", values)
        return tensors

    @classmethod
    def from_file(
        cls,
        path: Any,
        header: Mapping[str, Any],
        tensors: Mapping[str, np.ndarray],
        *,
        threads: int = 1,
        room: Room | None = None,
    ) -> Self:
        """The estimator that the header and the arrays of a model file describe, or one part of such a file."""
        try:
            task = header["task"]
            known = cls().get_params()
            options = {name: value for name, value in dict(task["options"]).items() if name in known}
            check_options(options)
            loaded = cls(**options | {"threads": threads})
            loaded.task_ = cls.Task.from_description(task)
            loaded.templates = loaded.task_.templates
            loaded.fingerprint_ = str(task["fingerprint"])
            loaded.vocabulary_ = strings_of("vocabulary", tensors)
            names = [name for name in loaded.task_.columns if f"task.column.{name}" in tensors]
            loaded.column_values_ = {name: strings_of(f"column.{name}", tensors) for name in names}
            if task["files"] is not None:
                columns: Any = cls.VERBS.files
                loaded.columns_ = columns.from_description(task["files"])
            loaded.restore(task, tensors)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, LolsError) as error:
            raise ModelFileError(f"{path}: the task in the header is damaged ({error})") from error
        loaded.model_ = make_model(path, header, tensors, loaded.task_.space, threads=threads, room=room)
        return loaded

    def restore(self, task: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> None:
        """Take over what else a model file has; damage is a `ValueError`."""
