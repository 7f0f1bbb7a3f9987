"""How far the training of a pipeline came: the parts that are done, beside the checkpoint of the one at work."""

from __future__ import annotations

from glob import escape
from pathlib import Path
from typing import Any

import numpy as np

from lols.errors import ModelFileError
from lols.io.model_file import read_tensors, write_tensors
from lols.io.whole_file import remove

KIND = "pipeline checkpoint"


class PipelineProgress:
    """What was made so far, in steps that are named: columns of tags, and taggers.

    Parameters
    ----------
    checkpoint
        Where it is kept; None keeps nothing.
    identity
        What must be equal for a file to belong to this training.
    resume
        Whether to take over what a file has.

    """

    def __init__(self, checkpoint: Any, identity: dict[str, Any], *, resume: bool = False):
        self.path = None if checkpoint is None else Path(checkpoint)
        self.identity = identity
        self.headers: dict[str, Any] = {}
        self.tensors: dict[str, np.ndarray] = {}
        if self.path is None:
            return
        if resume and self.path.exists():
            self._take_over(self.path)
        else:
            self._sweep()
            self._write(self.path)  # at once, so that the first step can be resumed, too

    def _take_over(self, path: Path) -> None:
        header, tensors = read_tensors(path, KIND)
        found = header.get("identity")
        for name, value in self.identity.items():
            if not isinstance(found, dict) or found.get(name) != value:
                raise ModelFileError(
                    f"{path}: made with another {name}; resume with the same data and options, or delete it"
                )
        if not isinstance(header.get("steps"), dict):
            raise ModelFileError(f"{path}: what was done so far is damaged; delete it, and start again")
        self.headers, self.tensors = header["steps"], tensors

    def _write(self, path: Path) -> None:
        header = {"identity": self.identity, "steps": self.headers}
        write_tensors(path, KIND, header, self.tensors or {"nothing": np.zeros(1)})

    def _sweep(self) -> None:
        """Delete the checkpoints of all steps, each before what is beside it and of no use without it."""
        if self.path is not None:
            for left in sorted(self.path.parent.glob(f"{escape(self.path.name)}.part*")):
                remove(left)

    def done(self, step: str) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """Header and arrays of a step that is done; None if it is not."""
        if step not in self.headers:
            return None
        own = {k.removeprefix(f"{step}/"): array for k, array in self.tensors.items() if k.startswith(f"{step}/")}
        return self.headers[step], own

    def fitting(self) -> dict[str, Any]:
        """How the step that comes next is trained: with a checkpoint of its own, which no other step takes over."""
        return {} if self.path is None else {"checkpoint": f"{self.path}.part{len(self.headers)}", "resume": True}

    def keep(self, step: str, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        """Note that a step is done."""
        self.headers[step] = header
        self.tensors |= {f"{step}/{name}": array for name, array in tensors.items()}
        if self.path is not None:
            self._write(self.path)
            self._sweep()

    def end(self) -> None:
        """Delete all of it: training is done."""
        if self.path is not None:
            self._sweep()
            remove(self.path)
