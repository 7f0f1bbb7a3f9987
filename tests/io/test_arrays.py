"""Arrays of files, against safetensors and NumPy; and files that others overwrite while they are read."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from safetensors import SafetensorError

from lols.io import arrays as reading
from lols.io.arrays import TYPES, ArrayFile, read_safetensors
from lols.io.model_file import write_tensors

dtypes = st.sampled_from(sorted(TYPES.values())).map(np.dtype)
some_arrays = dtypes.flatmap(lambda dtype: arrays(dtype, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))


def same(one: np.ndarray, other: np.ndarray) -> bool:
    return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


def taken(content: bytes) -> dict[str, np.ndarray] | None:
    """What is read of a file; None if it is refused."""
    try:
        return read_safetensors(io.BytesIO(content))[1]
    except ValueError:
        return None


@given(
    st.dictionaries(st.text(max_size=5), some_arrays, max_size=4),
    st.dictionaries(st.text(), st.text(), min_size=1, max_size=2),
)
def test_arrays_are_read_as_they_were_saved(saved: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    saved.pop("__metadata__", None)
    content = safetensors.numpy.save(saved, metadata=metadata)
    said, found = read_safetensors(io.BytesIO(content))
    assert said == metadata and found.keys() == saved.keys()
    assert all(same(found[name], saved[name]) and found[name].flags.writeable for name in saved)
    for size in {0, 1, 7, 8, 9, len(content) // 2, len(content) - 1}:
        assert taken(content[:size]) is None or size == len(content)
    assert taken(content + b"\0") is None


numbers = st.sampled_from([0, 1, 2, 3, 4, 8, 16, 24, -8, 1 << 40, 1 << 62, 1 << 64, True, 2.0, None, "8", [8]])
places = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F64", "U8", "F8", "", 8, None, ["F64"], {}]),
        "shape": st.lists(numbers, max_size=3) | numbers,
        "data_offsets": st.tuples(numbers, numbers) | st.lists(numbers, max_size=3) | numbers,
    }
)
entries = st.dictionaries(st.sampled_from(["a", "b", "__metadata__"]), places | numbers, max_size=3)


@given(entries | numbers | st.lists(places, max_size=1), st.sampled_from([0, 8, 16, 24]))
def test_what_is_taken_of_a_forged_header_is_what_safetensors_takes(header: Any, size: int) -> None:
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    content = struct.pack("<Q", len(text)) + text + bytes(range(size))
    found = taken(content)
    if found is not None:
        try:
            wanted = safetensors.numpy.load(content)
        except SafetensorError:
            assert "__metadata__" in header  # metadata of other things than texts, which nobody looks at
            return
        assert found.keys() == wanted.keys() and all(same(found[name], wanted[name]) for name in found)


def test_a_forged_header_takes_no_memory() -> None:
    place = {"dtype": "F64", "shape": [1 << 40], "data_offsets": [0, 1 << 43]}
    for header in ({"a": place}, {"a": place | {"shape": [1 << 40, 0], "data_offsets": [0, 0]}}):
        text = json.dumps(header).encode()
        found = taken(struct.pack("<Q", len(text)) + text)
        assert found is None or found["a"].size == 0
    assert taken(struct.pack("<Q", 1 << 60) + b"{}") is None


@given(arrays(dtypes, array_shapes(min_dims=2, max_dims=2, max_side=9)), st.data(), st.booleans(), st.integers(1, 40))
def test_rows_of_a_table_are_those_of_numpy(values: np.ndarray, data: st.DataObject, turned: bool, block: int) -> None:
    chosen = np.array(sorted(data.draw(st.sets(st.integers(0, len(values) - 1)))), np.int64)
    file = io.BytesIO()
    np.save(file, np.asfortranarray(values) if turned else values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "BLOCK", block)
        table = ArrayFile.of(file) if file.seek(0) == 0 else None
        assert table is not None and (table.shape, table.dtype) == (values.shape, values.dtype)
        assert same(table.rows(chosen), values[chosen])


# Reads a file again and again, while it is overwritten in place as `cp` does it, and once when it is whole again.
OVERWRITTEN = """
import sys, threading
from pathlib import Path
{read}
from lols.errors import LolsError
path = Path(sys.argv[1])
content, done = path.read_bytes(), threading.Event()
def overwrite():
    while not done.is_set():
        with open(path, "wb", buffering=0) as file:
            for at in range(0, len(content), 1 << 17):
                file.write(content[at : at + (1 << 17)])
        done.wait(0.002)
thread = threading.Thread(target=overwrite)
thread.start()
try:
    for _ in range(200):
        try:
            read(path)
        except LolsError as error:
            assert len(str(error).splitlines()) == 1
finally:
    done.set()
    thread.join()
read(path)
"""
READ_MODEL = """
from lols.io.model_file import read_tensors
def read(path): read_tensors(path, "model")
"""
READ_VECTORS = """
from lols.tasks.tokens.vectors import read_vectors
def read(path): read_vectors(str(path), ())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="open files cannot be overwritten")
@pytest.mark.parametrize(("name", "read"), [("m.lols", READ_MODEL), ("v.npy", READ_VECTORS)])
def test_a_file_may_be_overwritten_while_it_is_read(name: str, read: str, tmp_path: Path) -> None:
    values = np.arange(1 << 18, dtype=np.float64).reshape(64, -1)
    if name == "m.lols":
        write_tensors(tmp_path / name, "model", {}, {"values": values})
    else:
        np.save(tmp_path / name, values)
        (tmp_path / "v.txt").write_text("\n".join(map(str, range(64))))
    program = [sys.executable, "-c", OVERWRITTEN.format(read=read), str(tmp_path / name)]
    ran = subprocess.run(program, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr  # -7 is SIGBUS, which no program survives
