"""Settings that all tests share."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test that is thinned, one case in so many is left to `make test`; the others are slow."""
    seen: Counter[Any] = Counter()
    for item in items:
        mark, test = item.get_closest_marker("thinned"), item.nodeid.partition("[")[0]
        if mark is not None and seen[test] % mark.args[0]:
            item.add_marker("slow")
        seen[test] += 1


@pytest.fixture(scope="session", autouse=True)
def ctrl_c() -> None:
    """Ctrl-C interrupts tests and the processes that they start, also if a script runs them in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Where several processes run tests, one waits for a kernel that another compiles, and loads it."""
    if "PYTEST_XDIST_WORKER" not in os.environ or os.name != "posix":
        yield
        return
    import fcntl

    from lols.kernels import kernel, store

    folder, compiled = tmp_path_factory.getbasetemp().parent, kernel._compiled  # all processes have this folder

    def once(function: Any, layout: Any, name: str) -> Any:
        with open(folder / f"{name}.lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                fcntl.flock(lock, fcntl.LOCK_EX)
                return store.find(name) or compiled(function, layout, name)
            return compiled(function, layout, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "_compiled", once)
        yield
