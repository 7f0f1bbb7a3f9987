"""Ray clusters of several nodes on this machine; nothing in them waits for ever."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster

NODE = {"node_ip_address": "127.0.0.1", "object_store_memory": 80 << 20, "include_dashboard": False}


@contextlib.contextmanager
def cluster(*cpus: int) -> Iterator[Cluster]:
    """A cluster with nodes of so many processors, the first of which this process is connected with."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": cpus[0], **NODE})
    try:
        ray.init(address=made.address, _node_ip_address="127.0.0.1", log_to_driver=False, logging_level="ERROR")
        for count in cpus[1:]:
            made.add_node(num_cpus=count, **NODE)
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def until(found: Callable[[], Any], seconds: float = 30.0) -> Any:
    """Wait until something is found."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"nothing after {seconds} s")


def kill_once(task: tuple[Any, Any, str]) -> Any:
    """Do a part of the work, but the sixth call of all kills its process."""
    function, item, folder = task
    with contextlib.suppress(FileExistsError):
        number = len(list(Path(folder).iterdir()))
        (Path(folder) / f"{number}").touch(exist_ok=False)
        if number == 5:
            os.kill(os.getpid(), 9)
    return function(item)


@contextlib.contextmanager
def killing(folder: Path) -> Iterator[None]:
    """Let a worker be killed in the middle of its work."""
    from lols.engines.ray import RayWorkers

    inner = RayWorkers.map

    def outer(self: Any, function: Any, items: Any, window: Any = None) -> Any:
        return inner(self, kill_once, ((function, item, str(folder)) for item in items), window)

    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RayWorkers, "map", outer)
        yield
    assert (folder / "5").exists()
