"""Write a file as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from lols.errors import LolsError

__all__ = ["write_whole"]


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file under a temporary name and rename it, so that an interruption leaves the old file or the new one.

    >>> path = tempfile.mkdtemp() + "/file.txt"
    >>> write_whole(path, b"content")
    >>> Path(path).read_bytes(), os.listdir(Path(path).parent)
    (b'content', ['file.txt'])
    """
    path, temporary = Path(path), ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=path.suffix, dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            os.chmod(temporary, 0o644)
            file.write(content)
        os.replace(temporary, path)
    except OSError as error:
        raise LolsError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
