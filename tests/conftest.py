"""Settings that all tests share."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

os.environ.setdefault("LOLS_ANNOUNCE", "0")  # a test of what is printed must not depend on what was compiled before

# Compilation falls into the first example of a test, and machines are slow: no deadlines. Runs are repeatable.
settings.register_profile(
    "lols",
    deadline=None,
    max_examples=40,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("lols")
