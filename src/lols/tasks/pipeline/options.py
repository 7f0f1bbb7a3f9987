"""What a pipeline's verbs take; nothing here takes time to import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lols.tasks.options import option
from lols.tasks.parsing.options import ParserColumns, ParserEvaluateOptions, ParserExplainOptions, ParserPredictOptions
from lols.tasks.tokens.options import FILE
from lols.tasks.verbs import TOKENS, InspectOptions, Verbs


@dataclass(frozen=True, kw_only=True)
class PipelineInspectOptions(InspectOptions):
    """What is shown of a pipeline."""

    label: Sequence[str] | None = option(
        default=None, help="Show the features of this label or action only; may be repeated.", kind=list[str] | None
    )
    part: str = option(default="parser", help="Which part to show: parser, or the column of a tagger.")


@dataclass(frozen=True, kw_only=True)
class PipelineExplainOptions(ParserExplainOptions):
    """How the search of a pipeline is shown."""

    part: str = option(default="parser", help="Which part to show: parser, or the column of a tagger.")


VERBS = Verbs(
    name="pipeline",
    unit="sentences",
    input=FILE,
    files=ParserColumns,
    options={
        "predict": ParserPredictOptions,
        "evaluate": ParserEvaluateOptions,
        "explain": PipelineExplainOptions,
        "inspect": PipelineInspectOptions,
    },
    counted=TOKENS,
)
