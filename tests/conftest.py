"""Settings that all tests share."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

os.environ.setdefault("LOLS_ANNOUNCE", "0")  # a test of what is printed must not depend on what was compiled before

# More examples where the tests of kernels run again (make test-slow).
EXAMPLES = 40 if {"NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"} & set(os.environ) else 25

# Compilation falls into the first example of a test, and machines are slow: no deadlines. Runs are repeatable.
settings.register_profile(
    "lols",
    deadline=None,
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("lols")
