"""What a pipeline's verbs take; nothing here takes time to import."""

from __future__ import annotations

from dataclasses import dataclass

from lols.tasks.options import option
from lols.tasks.parsing.options import ParserColumns, ParserEvaluateOptions, ParserExplainOptions, ParserPredictOptions
from lols.tasks.tokens.options import FILE, LabelOptions
from lols.tasks.verbs import TOKENS, Verbs


@dataclass(frozen=True, kw_only=True)
class PartOptions:
    """Which part of a pipeline is shown."""

    part: str = option(default="parser", help="Which part to show: parser, or the column of a tagger.")


@dataclass(frozen=True, kw_only=True)
class PipelineInspectOptions(PartOptions, LabelOptions):
    """What is shown of a pipeline."""


@dataclass(frozen=True, kw_only=True)
class PipelineExplainOptions(PartOptions, ParserExplainOptions):
    """How the search of a pipeline is shown."""


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
