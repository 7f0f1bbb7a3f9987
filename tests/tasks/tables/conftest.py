"""Tables, and a classifier trained on one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lols
from lols.tasks.tables.options import TableFiles
from lols.tasks.tables.predicting import predict_batches
from lols.tasks.tables.reading import open_files
from tests.tasks.tables.classifier_tables import COSTS, GIVEN, rows, train, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tables")
    write(made / "train.csv", rows(400, 1))
    write(made / "test.csv", rows(90, 2))
    (made / "costs.csv").write_text(COSTS)
    return made


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    train(folder / "train.csv", "-o", folder / "m.lols", *GIVEN)
    return folder / "m.lols"


@pytest.fixture(scope="module")
def predicted(model: Path, folder: Path) -> list[str]:
    """What the library predicts for the test file."""
    classifier = lols.load(model)
    source = open_files([str(folder / "test.csv")], TableFiles())
    numbers = np.concatenate([each.numbers for each in predict_batches(classifier, source)])
    return classifier.classes_[numbers].tolist()
