"""What tests of `lols.optimise` share."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest


@pytest.fixture
def processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count the time of this process alone, so that others do not take a part of the budget; compiling counts."""
    monkeypatch.setattr("lols.heuristics.budget.time", SimpleNamespace(perf_counter=time.process_time))
    monkeypatch.setattr("lols.heuristics.budget.compile_seconds", lambda: 0.0)
