"""What `lols.optimise` returns: a model that decides, and the report of how it compares with the heuristic."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from lols.contract.space import Reference
from lols.contract.task import as_teacher
from lols.heuristics.report import OptimisationReport
from lols.plots.plans import side_by_side
from lols.programs.model import ProgramModel
from lols.training.model import Model
from lols.training.model_file import is_own


@dataclass
class Optimised:
    """A policy that was learned from a heuristic, and the report of how it compares with it.

    Parameters
    ----------
    model
        The model: it decides by the learned policy, or by the heuristic if no policy was better.
    reference
        The heuristic; None for a program, which names it itself.
    report
        What was tried, and the comparison on held-out instances. `print(report)` shows it.

    """

    model: Model | ProgramModel
    reference: Reference | None
    report: OptimisationReport

    def predict(
        self, objects: Iterable[Any], *, improve: Callable[[Any, Any], Any] | None = None, **search: Any
    ) -> list[Any]:
        """The output for each object, as `model.predict` gives it: the learned policy's, or the heuristic's.

        The options are those of `model.predict`: `best_of`, `starts`, `beam` (not for programs), `temperature` and
        `seed`. If the heuristic was kept, each output of a search is the one of less loss, the heuristic's or that of
        the search.

        Parameters
        ----------
        objects
            The objects of the user, or `Examples` in columns.
        improve
            A function of an instance and its output, such as a local search, that returns a better output.
        **search
            Options of `Model.predict`, such as `best_of`.

        """
        outputs: list[Any] = self.model.predict(objects, improve=improve, **search)
        return outputs

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file: `lols.load(path, task)` reads it, and predicts the same.

        Parameters
        ----------
        path
            Where to write; the file is whole or not there.

        """
        self.model.save(path)

    def picture(
        self, instance: Any, draw: Callable[[Any, Any, Any], None], path: str | os.PathLike[str], **search: Any
    ) -> None:
        """Draw one instance before and after, as PNG, SVG or PDF by the ending of the path.

        `draw(axes, instance, output)` draws a plan with matplotlib, once for the heuristic and once for `predict` with
        the options of `search`.

        Parameters
        ----------
        instance
            The instance to draw.
        draw
            Draws a plan: it is given matplotlib's axes, the instance and its output.
        path
            Where to write: a .png, .svg or .pdf.
        **search
            Options of `Model.predict`, such as `best_of`.

        """
        model, given = self.model, () if self.reference is None else (self.reference,)
        outputs = [model.reference_outputs([instance], *given)[0], model.predict([instance], **search)[0]]
        losses = [model.reference_losses([instance], *given)[0], model.losses([instance], **search)[0]]
        names = "heuristic", self._drawn(search.get("best_of", 1))
        titles = [f"{name}: {loss:.4g}" for name, loss in zip(names, losses, strict=True)]
        side_by_side(draw, [(instance, output) for output in outputs], titles, path)

    def _drawn(self, best_of: int) -> str:
        """What a picture shows beside the heuristic."""
        if not self.model.kept_reference:
            return "learned" if best_of == 1 else f"learned, best of {best_of}"
        return "heuristic, which was kept" if best_of == 1 else f"heuristic, or best of {best_of} if better"

    def __str__(self) -> str:
        return str(self.report)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: a heuristic that is the task's own is found there again."""
        reference = self.reference
        if reference is not None and isinstance(self.model, Model):
            reference = None if is_own(reference, self.model.space) else reference.plain
        return {"model": self.model, "reference": reference, "report": self.report}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if isinstance(self.model, Model):
            self.reference = as_teacher(self.reference, self.model.space)
