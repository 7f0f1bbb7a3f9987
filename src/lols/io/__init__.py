"""Files: sentences as Python objects (`read_conllu`, ...), and what the estimators read and write.

Names are loaded when they are used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = [
    "Sentence",
    "from_frame",
    "from_spacy",
    "read_columns",
    "read_conllu",
    "split_text",
    "to_pandas",
    "to_polars",
    "to_spacy",
    "write_columns",
    "write_conllu",
]

if TYPE_CHECKING:
    from lols.io.sentences import (
        Sentence,
        from_frame,
        read_columns,
        read_conllu,
        to_pandas,
        to_polars,
        write_columns,
        write_conllu,
    )
    from lols.io.spacy_docs import from_spacy, to_spacy
    from lols.io.text import split_text


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'lols.io' has no attribute '{name}'")
    module = "spacy_docs" if name.endswith("_spacy") else "text" if name == "split_text" else "sentences"
    return getattr(importlib.import_module(f"lols.io.{module}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
