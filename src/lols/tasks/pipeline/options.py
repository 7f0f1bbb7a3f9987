"""What a pipeline's verbs take; nothing here takes time to import."""

from __future__ import annotations

from dataclasses import dataclass

from lols.tasks.options import option
from lols.tasks.parsing.options import ParserColumns, ParserEvaluation, ParserPrediction
from lols.tasks.tokens.options import FILE
from lols.tasks.verbs import InspectOptions, Verbs

__all__ = ["VERBS", "PipelineInspection"]


@dataclass(frozen=True, kw_only=True)
class PipelineInspection(InspectOptions):
    """What is shown of a pipeline."""

    label: list[str] | None = option(None, "Show the features of this label or action only; may be repeated.")
    part: str = option("parser", "Which part to show: parser, or the column of a tagger.")


VERBS = Verbs(
    name="pipeline",
    unit="sentences",
    input=FILE,
    files=ParserColumns,
    options={"predict": ParserPrediction, "evaluate": ParserEvaluation, "inspect": PipelineInspection},
    speed="tokens_per_second",
)
