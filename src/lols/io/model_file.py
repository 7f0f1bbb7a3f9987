"""Model files: named arrays and a JSON header in one safetensors file. Loading one executes nothing."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from lols.errors import ModelFileError

__all__ = ["read_tensors", "write_tensors"]

FORMAT = 1


def write_tensors(
    path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], tensors: Mapping[str, np.ndarray]
) -> None:
    """Write arrays and header under a temporary name, then rename: a file is whole or not there.

    >>> import tempfile; from lols.io.model_file import read_tensors
    >>> path = tempfile.mkdtemp() + "/m.lols"
    >>> write_tensors(path, "model", {"seed": 1}, {"weights": np.arange(3.0)})
    >>> header, tensors = read_tensors(path, "model")
    >>> header["seed"], tensors["weights"].tolist()
    (1, [0.0, 1.0, 2.0])
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    except OSError as error:
        raise ModelFileError(f"cannot write {path}: {error.strerror}") from error
    os.close(handle)
    try:
        metadata = {"lols": json.dumps({"format": FORMAT, "kind": kind, **header}, sort_keys=True)}
        save_file({name: np.ascontiguousarray(a) for name, a in tensors.items()}, temporary, metadata=metadata)
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_tensors(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read header and arrays; a file that is truncated, edited or of another kind gives one clear line."""
    if not Path(path).is_file():
        raise ModelFileError(f"{path}: there is no such file")
    try:
        with safe_open(path, framework="numpy") as opened:
            metadata = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        header = json.loads(metadata["lols"])
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelFileError(f"{path}: not a readable lols file ({error}); train and save it again") from error
    except KeyError:
        raise ModelFileError(f"{path}: a safetensors file, but not one of lols") from None
    if not isinstance(header, dict) or header.get("kind") != kind:
        found = header.get("kind") if isinstance(header, dict) else None
        raise ModelFileError(f"{path}: holds a {found or 'thing without a kind'}, not a {kind}")
    if header.get("format") != FORMAT:
        raise ModelFileError(f"{path}: format {header.get('format')}; this version of lols reads format {FORMAT}")
    for name, array in tensors.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelFileError(f"{path}: '{name}' holds NaN or infinity; the file is damaged")
    return header, tensors
