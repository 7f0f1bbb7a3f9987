"""Faults on a cluster: workers, nodes and the driver die, nodes come; the weights stay the same, bit for bit."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import lols
from lols.engines import InProcess, Ray
from lols.io.model_file import read_tensors
from tests.engines.ray_clusters import NODE, cluster, killing, until
from tests.engines.small_problems import fitted, same

pytestmark = pytest.mark.ray


def test_workers_and_nodes_may_go_and_come(tmp_path: Path) -> None:
    plain, mixed = fitted(None, passes=3), fitted(InProcess(sync="pass", shards=4), passes=3)
    with cluster(1, 1) as nodes:
        with killing(tmp_path / "exact"):
            assert same(plain, fitted(Ray(workers=2), passes=3))
        with killing(tmp_path / "pass"):
            assert same(mixed, fitted(Ray(workers=2, sync="pass", shards=4), passes=3))

        def leave_and_come(number: int, model: Any) -> None:
            if number == 0:
                nodes.remove_node(next(iter(nodes.worker_nodes)), allow_graceful=False)
            else:
                nodes.add_node(num_cpus=1, wait=False, **NODE)

        assert same(plain, fitted(Ray(workers=3), passes=3, after_pass=leave_and_come))
        assert same(mixed, fitted(Ray(workers=3, sync="pass", shards=4), passes=3, after_pass=leave_and_come))


DRIVER = """
import sys
from lols.engines import Ray
from tests.engines.small_problems import fitted

def tell(number, model):
    print("pass", number, flush=True)

fitted(Ray(workers=1, sync=sys.argv[2]), passes=60, checkpoint=sys.argv[1], checkpoint_every=0.0, after_pass=tell)
"""


def ended_by(number: signal.Signals, file: Path, sync: str) -> int:
    """Train on a local Ray until the third pass is done, and end the driver; how many passes its checkpoint has."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    command = [sys.executable, "-c", DRIVER, str(file), sync]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    limit = threading.Timer(60.0, driver.kill)
    limit.start()
    try:
        assert driver.stdout is not None
        for expected in range(3):
            assert driver.stdout.readline() == f"pass {expected}\n"
        started = descendants(driver.pid)
        driver.send_signal(number)
        assert driver.wait(30) != 0
    finally:
        limit.cancel()
        driver.kill()
    assert started
    if number == signal.SIGINT:  # Ray's own agents outlive a driver that was killed, for about a minute
        until(lambda: not [pid for pid in started if runs(pid)], 20.0)
    done = read_tensors(file, "checkpoint")[0]["pass"]
    assert 0 < done < 60
    return int(done)


def descendants(process: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    table = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(int(n) for n in line.split()) for line in table.splitlines()]
    found = [process]
    for parent in found:
        found += [pid for pid, above in pairs if above == parent]
    return found[1:]


def runs(process: int) -> bool:
    """Whether a process is there, and no zombie."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_an_interrupted_driver_leaves_a_checkpoint_and_no_processes(tmp_path: Path) -> None:
    ended_by(signal.SIGINT, tmp_path / "checkpoint", "pass")


@pytest.mark.parametrize("sync", ["exact", "pass"])
def test_a_killed_driver_is_resumed(tmp_path: Path, sync: str) -> None:
    """The checkpoint of a driver that was killed is gone on from, with the same weights."""
    file = tmp_path / "checkpoint"
    ended_by(signal.SIGKILL, file, sync)
    alone = InProcess(sync=sync, shards=1 if sync == "pass" else None)
    whole = fitted(alone, passes=60)
    resumed = Ray(workers=1) if sync == "exact" else alone
    assert same(whole, fitted(resumed, passes=60, checkpoint=file, resume=True))


def test_a_wrong_address_is_one_line() -> None:
    with pytest.raises(
        lols.LolsError, match=r"^there is no Ray at 127.0.0.1:9 \(.*\): start one, or leave out address$"
    ):
        Ray(address="127.0.0.1:9").start()
    with pytest.raises(lols.LolsError, match=r"^there is no Ray at auto \(.*\): start one, or leave out address$"):
        Ray(address="auto").start()


@pytest.mark.parametrize("message", ["", "\n", "no raylet\nsee the logs\n"])
def test_a_ray_that_does_not_start_is_one_line(message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    def fail(*_: Any, **__: Any) -> None:
        raise ConnectionError(message)

    monkeypatch.setattr(ray, "init", fail)
    why = "no raylet" if message.strip() else "ConnectionError"
    with pytest.raises(lols.LolsError, match=rf"^Ray did not start on this machine \({why}\): try again$"):
        Ray(workers=1).start()


@pytest.mark.parametrize("message", ["", "\n", "the store is full\nsee the logs\n"])
def test_what_ray_reports_later_is_one_line(message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    def fail(*_: Any, **__: Any) -> None:
        raise ray.exceptions.ObjectStoreFullError(message)

    said = r"^Ray has failed \(ObjectStoreFullError: [^\n]*[^\n ][^\n]*\): see its logs, [^\n]*session_latest$"
    with Ray(workers=1).start() as workers:
        for name in ("put", "wait"):
            with monkeypatch.context() as patched, pytest.raises(lols.LolsError, match=said):
                patched.setattr(ray, name, fail)
                list(workers.map(len, [workers.share("ab")]))
