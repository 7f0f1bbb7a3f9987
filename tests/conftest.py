"""Settings that all tests share."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

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
