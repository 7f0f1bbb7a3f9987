"""Taggers for tests."""

from __future__ import annotations

from typing import Any

from lols import Tagger
from tests.tasks.tagging.tagger_data import sentences, spans

QUIET: dict[str, Any] = {"passes": 2, "progress": False}
WORDS, GOLD = sentences(30)
CHUNK_WORDS, CHUNKS = spans(30)


def tagger(**options: Any) -> Tagger:
    return Tagger(**(QUIET | options))
