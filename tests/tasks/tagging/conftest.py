"""Files of sentences, and taggers trained on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lols import Tagger
from tests.tasks.tagging import trained_taggers
from tests.tasks.tagging.tagger_data import columns, conllu
from tests.tasks.tagging.tagger_files import CHUNK_WORDS, CHUNKS, GOLD, UNSEEN, UNSEEN_GOLD, WORDS, train


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    (made / "train.conllu").write_text(conllu(WORDS, GOLD))
    (made / "test.conllu").write_text(conllu(UNSEEN, UNSEEN_GOLD))
    (made / "chunks.txt").write_text(columns(CHUNK_WORDS, CHUNKS))
    return made


@pytest.fixture(scope="module")
def pos(folder: Path) -> Path:
    train(folder / "train.conllu", "-o", folder / "pos.lols")
    return folder / "pos.lols"


@pytest.fixture(scope="module")
def chunks(folder: Path) -> Path:
    train(folder / "chunks.txt", "-o", folder / "chunks.lols")
    return folder / "chunks.lols"


@pytest.fixture(scope="module")
def fitted() -> Tagger:
    return trained_taggers.tagger().fit(trained_taggers.WORDS, trained_taggers.GOLD)


@pytest.fixture(scope="module")
def chunker() -> Tagger:
    return trained_taggers.tagger(direction="forward").fit(CHUNK_WORDS, CHUNKS)
