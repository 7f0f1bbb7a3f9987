"""Work beside the search: a network learns from one batch while the next one is searched."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

Work = Callable[[], None]


class Background:
    """One piece of work at a time: that is due, or that a thread does.

    On a GPU, all work is on a stream of its own, so that the search need not wait for it; `threaded` says whether it is
    done by a thread. On a CPU both would share the same cores.
    """

    def __init__(self, device: torch.device, threaded: bool | None = None):
        self.device, self.threaded = device, device.type == "cuda" if threaded is None else threaded
        self._due: Work | None = None
        self._future: Future[None] | None = None
        self._stream: Any = None
        self._executor: ThreadPoolExecutor | None = None

    @property
    def is_due(self) -> bool:
        """Whether there is work that has not begun."""
        return self._due is not None

    def put_off(self, work: Work) -> None:
        """Complete the work before, and make this due."""
        self.finish()
        self._due = work

    def begin(self, *, at_once: bool = False) -> None:
        """Begin the work that is due: a thread does it, unless it is to be done at once."""
        if self._due is None or at_once or not self.threaded:
            return self.finish()
        self.wait()
        work, self._due = self._due, None
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "lols-learning")
        before = self._waits_for()
        self._future = self._executor.submit(self._do, work, before)

    def wait(self) -> None:
        """Wait for the thread; errors of its work are raised here."""
        if self._future is not None:
            future, self._future = self._future, None
            future.result()

    def finish(self) -> None:
        """Complete all work."""
        self.wait()
        if self._due is not None:
            work, self._due = self._due, None
            self._do(work, self._waits_for())

    def _waits_for(self) -> Any:
        """What the GPU has been asked to do so far, which the work may depend on."""
        return torch.cuda.current_stream(self.device).record_event() if self.device.type == "cuda" else None

    def _do(self, work: Work, before: Any) -> None:
        if before is None:
            return work()
        if self._stream is None:
            self._stream = torch.cuda.Stream(self.device)
        with torch.cuda.stream(self._stream):
            self._stream.wait_event(before)
            try:
                work()
            finally:
                self._stream.synchronize()

    def __reduce__(self) -> tuple[Any, ...]:
        """What is copied and pickled: no work and no thread."""
        return Background, (self.device, self.threaded)
