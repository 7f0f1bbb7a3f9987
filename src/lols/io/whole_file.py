"""Write a file as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from lols.errors import LolsError

__all__ = ["write_whole"]


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file under a temporary name and rename it, so that an interruption leaves the old file or the new one.

    >>> import tempfile; path = tempfile.mkdtemp() + "/file.txt"
    >>> write_whole(path, b"content")
    >>> Path(path).read_bytes(), os.listdir(Path(path).parent)
    (b'content', ['file.txt'])
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}.tmp")
    try:
        if path.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        # Not by `tempfile`, so that the file has the permissions of any new file.
        with open(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise LolsError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
