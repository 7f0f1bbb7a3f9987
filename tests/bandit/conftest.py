"""Fixtures of the tests of bandits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bandit.log_entries import decision, loss, sqlite_log


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of 30 decisions with their losses, which tests copy."""
    path = tmp_path_factory.mktemp("whole") / "a.log"
    with sqlite_log(path) as log:
        for k in range(30):
            log.append(decision(k))
            log.append(loss(k))
    return path
