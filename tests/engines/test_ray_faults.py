"""Faults on a cluster: workers, nodes and the driver die, nodes come; the weights stay the same, bit for bit."""

from __future__ import annotations

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
import sys, time
from lols.engines import Ray
from tests.engines.small_problems import fitted

def tell(number, model):
    print("pass", number, flush=True)

fitted(Ray(workers=1), passes=400, checkpoint=sys.argv[1], after_pass=tell)
"""


def test_an_interrupted_driver_leaves_a_checkpoint(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(file)], stdout=subprocess.PIPE, text=True, env=environment
    )
    limit = threading.Timer(60.0, driver.kill)
    limit.start()
    try:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "pass 0\n"
        driver.send_signal(signal.SIGINT)
        driver.stdout.read()
        assert driver.wait(30) != 0
    finally:
        limit.cancel()
        driver.kill()
    until(file.exists, 5.0)
    from lols.io.model_file import read_tensors

    header, _ = read_tensors(file, "checkpoint")
    done = header["pass"]
    assert 0 < done < 400


def test_a_killed_driver_is_resumed(tmp_path: Path) -> None:
    """A checkpoint of a run on Ray is gone on from in one process, with the same weights."""
    file = tmp_path / "checkpoint"

    def stop(number: int, model: Any) -> None:
        if number == 1:
            raise KeyError("killed")

    with cluster(1):
        with pytest.raises(KeyError):
            fitted(Ray(workers=1), passes=3, checkpoint=file, checkpoint_every=0.0, after_pass=stop)
        assert same(fitted(None, passes=3), fitted(Ray(workers=1), passes=3, checkpoint=file, resume=True))


def test_a_wrong_address_is_one_line() -> None:
    with pytest.raises(
        lols.LolsError, match=r"^there is no Ray at 127.0.0.1:9 \(.*\): start one, or leave out address$"
    ):
        Ray(address="127.0.0.1:9").start()
    with pytest.raises(lols.LolsError, match=r"^there is no Ray at auto \(.*\): start one, or leave out address$"):
        Ray(address="auto").start()
