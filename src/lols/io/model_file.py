"""Model files: named arrays and a JSON header in one safetensors file. Loading one executes nothing."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save

from lols.errors import LolsError, ModelFileError
from lols.io.arrays import read_safetensors
from lols.io.whole_file import write_whole

PICKLED = "the pickled model"  # its name in messages
FORMAT = 2  # 2: weights without zeros, and the task
KEPT = 3  # 3: the reference decides, not the policy; earlier versions, which do not know that, refuse the file


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
    try:
        content = to_bytes(kind, header, tensors)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except LolsError as error:
        raise ModelFileError(str(error)) from error
    except (OSError, SafetensorError) as error:
        raise ModelFileError(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}") from error


def to_bytes(kind: str, header: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> bytes:
    """The content of the file."""
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    whole = {"format": FORMAT, "kind": kind, **header}
    return save(arrays, metadata={"lols": _text(whole | {"digest": _digest(whole, arrays)})})


def from_bytes(content: bytes, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays in the content of a file, with all the checks of `read_tensors`."""
    return _read(io.BytesIO(content), PICKLED, kind)


def _text(header: Mapping[str, Any]) -> str:
    return json.dumps(header, sort_keys=True)


def _digest(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """A checksum of header and arrays: a damaged file must not predict."""
    digest = hashlib.sha256(_text(header).encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(arrays[name].reshape(-1).data)
    return digest.hexdigest()


def read_tensors(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read header and arrays; a file that is truncated, edited or of another kind gives one clear line."""
    if not Path(path).is_file():
        raise ModelFileError(f"{path}: there is no such file")
    try:
        with open(path, "rb") as file:
            return _read(file, path, kind)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str | os.PathLike[str], error: Exception) -> ModelFileError:
    reason = " ".join(str(error).split())
    return ModelFileError(
        f"{path}: not a readable lols file ({reason}); is this the model? If so, train and save it again"
    )


def _read(file: BinaryIO, path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of an open file, which messages call by this path."""
    try:
        metadata, tensors = read_safetensors(file)
        header = json.loads(metadata["lols"])
    except (ValueError, TypeError, MemoryError, RecursionError) as error:
        raise _unreadable(path, error) from error
    except KeyError:
        raise ModelFileError(f"{path}: a safetensors file, but not one of lols") from None
    if not isinstance(header, dict) or header.get("kind") != kind:
        found = header.get("kind") if isinstance(header, dict) else None
        raise ModelFileError(f"{path}: holds a {found or 'thing without a kind'}, not a {kind}")
    if header.get("format") not in (FORMAT, KEPT):
        found = header.get("format")
        raise ModelFileError(f"{path}: format {found}; this version of lols reads formats {FORMAT} and {KEPT}")
    digest = header.pop("digest", None)
    try:
        fits = _digest(header, tensors) == digest
    except RecursionError:
        fits = False
    if not fits:
        raise ModelFileError(
            f"{path}: the checksum does not fit, so the file is damaged, or was being written; load it again, or "
            "train and save it again"
        )
    for name, array in tensors.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelFileError(f"{path}: '{name}' holds NaN or infinity; the file is damaged")
    return header, tensors


def read_task(path: str | os.PathLike[str], name: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a model file, if it is that of a tagger, a parser, ..., as the name says."""
    header, tensors = read_tensors(path, "model")
    if not isinstance(header.get("task"), dict) or header["task"].get("name") != name:
        raise ModelFileError(f"{path}: not a {name}; `lols inspect` says what it is")
    return header, tensors
