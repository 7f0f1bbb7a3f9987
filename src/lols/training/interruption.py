"""Ctrl-C during training: the batch is finished first, so that a checkpoint can be written."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interruption:
    """Notes the first Ctrl-C, and lets the second one through; does nothing unless it is wanted.

    >>> with Interruption(wanted=True) as interruption:
    ...     interruption.asked
    False
    """

    def __init__(self, *, wanted: bool):
        self.asked = False
        self._wanted = wanted and threading.current_thread() is threading.main_thread()
        self._before: Any = None

    def __enter__(self) -> Interruption:
        if self._wanted and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def obey(self) -> None:
        """Stop if Ctrl-C was pressed."""
        if self.asked:
            raise KeyboardInterrupt
