"""How far the training of a pipeline came: the parts that are done, beside the checkpoint of the one at work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lols.errors import ModelFileError
from lols.io.model_file import read_tensors, write_tensors
from lols.io.whole_file import remove
from lols.tasks.choice import forget

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
        self._resumes = False
        if self.path is None:
            return
        if resume and self.path.exists():
            self._take_over(self.path)
        else:
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
        self.headers, self.tensors, self._resumes = header["steps"], tensors, True

    def _write(self, path: Path) -> None:
        header = {"identity": self.identity, "steps": self.headers}
        write_tensors(path, KIND, header, self.tensors or {"nothing": np.zeros(1)})

    @property
    def part(self) -> Path:
        """The checkpoint of the step that is at work."""
        return Path(f"{self.path}.part")

    def done(self, step: str) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """Header and arrays of a step that is done; None if it is not."""
        if step not in self.headers:
            return None
        own = {k.removeprefix(f"{step}/"): array for k, array in self.tensors.items() if k.startswith(f"{step}/")}
        return self.headers[step], own

    def fitting(self) -> dict[str, Any]:
        """How the step that comes next is trained: with a checkpoint of its own."""
        if self.path is None:
            return {}
        if not self._resumes:
            forget(self.part)
        return {"checkpoint": self.part, "resume": self._resumes}

    def keep(self, step: str, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        """Note that a step is done."""
        self.headers[step] = header
        self.tensors |= {f"{step}/{name}": array for name, array in tensors.items()}
        if self.path is not None:
            self._write(self.path)
            forget(self.part)

    def end(self) -> None:
        """Delete all of it: training is done."""
        if self.path is not None:
            forget(self.part)
            remove(self.path)
