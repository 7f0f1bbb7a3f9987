"""`python -m tests.fuzz`: the fuzzer for as long as you like, or one case again."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.campaign import Campaign, Finding, attempt, generator
from tests.fuzz.targets import MISSING, TARGETS


def repeat(seed: int, name: str, case: int) -> int:
    """Run one case in this process, where a debugger sees it."""
    with tempfile.TemporaryDirectory(prefix="lols-fuzz-") as folder:
        target = TARGETS[name](Path(folder))
        ended = attempt(target, generator(seed, name, case))
    print(f"{name}, seed {seed}, case {case}: {ended}")
    return int(ended not in ("taken", "refused"))


def report(campaign: Campaign, seconds: float) -> None:
    print(f"{'target':<20} {'cases':>8} {'taken':>8} {'refused':>8} {'failed':>8}")
    for name, tally in campaign.tallies.items():
        print(f"{name:<20} {tally.cases:>8} {tally.taken:>8} {tally.refused:>8} {tally.failed:>8}")
    total = sum(tally.cases for tally in campaign.tallies.values())
    print(f"{total} cases in {seconds:.0f} s, seed {campaign.seed}: {len(campaign.findings)} failures")


def show(finding: Finding, seed: int) -> None:
    print(f"\n{finding.what.strip()}")
    print(f"  again: python -m tests.fuzz --seed {seed} --target {finding.target} --case {finding.case}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long to run")
    parser.add_argument("--seed", type=int, default=None, help="the seed of all cases; by default the time")
    parser.add_argument("--target", choices=TARGETS, default=None, help="run this target only")
    parser.add_argument("--case", type=int, default=None, help="run this case of the target only, in this process")
    given = parser.parse_args()
    seed = int(time.time()) if given.seed is None else given.seed
    if given.case is not None:
        if given.target is None or given.seed is None:
            parser.error("--case needs --target and --seed")
        return repeat(seed, given.target, given.case)
    for name, packages in MISSING.items():
        if packages:
            print(f"{name}: skipped, because {' and '.join(packages)} cannot be imported")
    campaign, began = Campaign(seed), time.monotonic()
    try:
        campaign.run_for([given.target] if given.target else list(TARGETS), 60 * given.minutes)
    except KeyboardInterrupt:
        print("interrupted")
    report(campaign, time.monotonic() - began)
    for finding in campaign.findings:
        show(finding, seed)
    return int(bool(campaign.findings))


if __name__ == "__main__":
    sys.exit(main())
