"""A file that is larger than the memory which the processes are allowed: the system refuses them more."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import lols

resource = pytest.importorskip("resource")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory that a process has by itself"),
]

SIZE, ALLOWED = 320 << 20, 256 << 20  # bytes: of the file, and of the memory of each process (not of what it maps)
WORDS, TAGS = ["the", "dog", "barks"], ["DET", "NOUN", "VERB"]
FEW_THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def sentence(tags: list[str]) -> str:
    """A sentence with long cells, so that there are few words for the bytes."""
    rows = [f"{k}\t{w}\t{'l' * 100}\t{t}\t_\t_\t0\t_\t_\t{'m' * 100}\n" for k, (w, t) in enumerate(zip(WORDS, tags), 1)]
    return "".join(rows) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, a small file, a large one, and the same packed; kernels have been compiled."""
    made: Path = tmp_path_factory.mktemp("memory")
    lols.Tagger(passes=1).fit([WORDS] * 4, [TAGS] * 4).save(made / "pos.lols")
    (made / "small.conllu").write_text(sentence(["X"] * 3))
    block = sentence(["X"] * 3) * 1000
    with (
        open(made / "large.conllu", "w") as plain,
        gzip.open(made / "packed.conllu.gz", "wt", compresslevel=1) as packed,
    ):
        for _ in range(SIZE // len(block) + 1):
            plain.write(block)
            packed.write(block)
    assert predicted(made, "small.conllu", None).returncode == 0
    return made


def predicted(folder: Path, name: str, allowed: int | None, *options: str) -> subprocess.CompletedProcess[str]:
    """Predict on the command line, with so much memory for each process."""
    command = [sys.executable, "-m", "lols", "predict", str(folder / "pos.lols"), str(folder / name)]

    def limit() -> None:
        if allowed is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (allowed, allowed))

    command += ["-o", str(folder / "out"), *(options or ("--engine", "this"))]
    return subprocess.run(
        command, env={**os.environ, **FEW_THREADS}, preexec_fn=limit, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("options", [("--engine", "this"), ("--engine", "processes", "--workers", "2")], ids=" ".join)
@pytest.mark.parametrize("name", ["large.conllu", "packed.conllu.gz"])
def test_a_file_may_be_larger_than_memory(folder: Path, name: str, options: tuple[str, ...]) -> None:
    made = predicted(folder, name, ALLOWED, *options)
    assert made.returncode == 0, made.stderr
    opened = gzip.open if name.endswith(".gz") else open
    wanted, size = sentence(TAGS).encode() * 1000, 0
    with opened(folder / "out" / name, "rb") as file:
        while block := file.read(len(wanted)):
            assert block == wanted
            size += len(block)
    assert size >= SIZE > ALLOWED
    (folder / "out" / name).unlink()


def test_the_limit_is_one(folder: Path) -> None:
    assert "MemoryError" in predicted(folder, "small.conllu", ALLOWED // 4).stderr


PEAKS = """
import json, re, sys
from pathlib import Path
from lols.cli import main
from lols.engines.ray import RayWorkers

def close(self, inner=RayWorkers.close):
    if self.alive:
        status = Path("/proc/self/status")
        for text in (status.read_text(), *self.map(Path.read_text, [status])):
            print(json.dumps(dict(re.findall(r"(VmHWM|RssShmem):\\s+(\\d+) kB", text))), file=sys.stderr)
    inner(self)

RayWorkers.close = close
main()
"""


def peaks(folder: Path, name: str) -> list[int]:
    """The most bytes that the driver and a worker on Ray had when they predicted a file, but for Ray's object store."""
    command = [sys.executable, "-c", PEAKS, "predict", str(folder / "pos.lols"), str(folder / name)]
    command += ["-o", str(folder / "out"), "--engine", "ray", "--workers", "1"]
    made = subprocess.run(command, env={**os.environ, **FEW_THREADS}, capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stderr
    sentences = (folder / name).stat().st_size // len(sentence(["X"] * 3))
    assert (folder / "out" / name).stat().st_size == sentences * len(sentence(TAGS))
    (folder / "out" / name).unlink()
    found = [json.loads(line) for line in made.stderr.splitlines()[-2:]]
    return [1024 * (int(each["VmHWM"]) - int(each["RssShmem"])) for each in found]


@pytest.mark.ray
def test_the_memory_of_ray_workers_does_not_grow_with_the_file(folder: Path) -> None:
    """It is measured, and not limited as above, because Ray's threads alone are allotted more."""
    pytest.importorskip("ray")
    few = sentence(["X"] * 3)
    (folder / "few.conllu").write_text(few * (SIZE // 20 // len(few)))
    for small, large in zip(peaks(folder, "few.conllu"), peaks(folder, "large.conllu"), strict=True):
        assert large - small < SIZE // 5
