"""`python -m tests.fuzz.soak_ray`: workers of a local Ray are killed at random times, and the weights stay the same."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz.judging import Lost

TRAININGS = 2  # on one Ray
KILLS = 4  # in one training: work whose workers die more often is given up
LIMIT = 300.0  # seconds
SAME = "the weights are those of a training without Ray"


class RayKills:
    """Trainings on Ray, each time in a process of its own, because Ray stays in the one that used it."""

    def __init__(self) -> None:
        self.kills = self.runs = 0

    def once(self, rng: random.Random) -> None:
        """Train on one Ray, and kill its workers."""
        if find_spec("ray") is None:
            return
        command = [sys.executable, "-m", "tests.fuzz.soak_ray", str(rng.randrange(1 << 30))]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            raise Lost(f"Ray: {' '.join(command[1:])} does not come to an end") from None
        said = ran.stdout.splitlines()
        if ran.returncode != 0 or not said or said[-1] != SAME:
            raise Lost(f"Ray: {' '.join(command[1:])}: exit code {ran.returncode}\n{ran.stdout}{ran.stderr[-2000:]}")
        self.kills, self.runs = self.kills + said.count("killed"), self.runs + TRAININGS

    def line(self) -> str:
        """What was done."""
        if find_spec("ray") is None:
            return "Ray: not installed, so none of its workers was killed"
        return f"Ray: {self.kills} kills in {self.runs} trainings, all with the weights of one without"


def workers_of(process: int) -> list[int]:
    """The actors among the processes below one."""
    table = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in table.splitlines()]
    below = [process]
    for parent in below:
        below += [int(pid) for pid, above, *_ in rows if int(above) == parent]
    return [int(pid) for pid, _, *args in rows if int(pid) in below and args and args[0].startswith("ray::Actor")]


def kill_some(rng: random.Random, over: threading.Event) -> None:
    """Kill workers at random times, until all is over or some have died."""
    kills = 0
    while kills < KILLS and not over.wait(rng.uniform(0.1, 1.0)):
        found = workers_of(os.getpid())
        if found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(found), signal.SIGKILL)
                kills += 1
                print("killed", flush=True)


def main(seed: int) -> int:
    from lols.engines import InProcess, Ray
    from tests.engines.small_problems import fitted, same

    rng, passes = random.Random(seed), 40
    for sync in random.Random(seed).sample(["exact", "pass"], TRAININGS):
        how = {"sync": sync, "shards": 4 if sync == "pass" else None}
        alone, over = fitted(InProcess(**how), passes=passes), threading.Event()
        killer = threading.Thread(target=kill_some, args=(rng, over), daemon=True)
        killer.start()
        try:
            shared = fitted(Ray(workers=2, **how), passes=passes)
        finally:
            over.set()
            killer.join()
        if not same(alone, shared):
            print(f"with sync={sync} the weights differ from those of a training without Ray")
            return 1
    print(SAME)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    sys.exit(main(int(sys.argv[1])))
