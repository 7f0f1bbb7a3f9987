"""A generated table of network connections: rare attacks among much traffic, as in KDD Cup 99.

Each row is a connection as a firewall would record it. It is `normal` or has the name of an attack; `kdd99` is the
label map from these names to five classes and the matrix of their costs. Floods make up most of the rows, break-ins a
few in ten thousand. As in KDD Cup 99, the test part has other proportions and attacks that training does not contain,
some of which look just like normal traffic, so that no classifier reaches cost 0.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lols.errors import ConfigurationError, LolsError

COLUMNS = (
    "protocol", "service", "flag", "duration", "bytes_sent", "bytes_received", "logged_in", "failed_logins",
    "root_shell", "connections", "same_service", "errors", "hosts",
)  # fmt: skip
DIGITS = 2  # of shares, after the point
NOISE = 0.04  # how often a cell is replaced by that of another row


class Connections(NamedTuple):
    """Columns of cells in the order of `COLUMNS`, and the name of each row's attack, or `normal`."""

    columns: dict[str, list[str]]
    names: list[str]


class _Kind(NamedTuple):
    """Connections of one kind: weights of categories, medians of numbers, probabilities of marks."""

    train: float  # rows per thousand
    test: float
    protocol: str
    services: dict[str, float]
    flags: dict[str, float]
    duration: float = 0.0
    sent: float = 0.0
    received: float = 0.0
    logged_in: float = 0.0
    failed: float = 0.0
    root: float = 0.0
    connections: float = 2.0
    same: float = 0.9
    errors: float = 0.01
    hosts: float = 20.0


_FINE = {"SF": 9.5, "REJ": 0.3, "S0": 0.1, "RSTO": 0.1}
_KINDS: dict[str, tuple[_Kind, ...]] = {
    "normal": (
        _Kind(120, 110, "tcp", {"http": 8, "smtp": 2}, _FINE, 0.4, 240, 1800, 0.97, 0.0, 0.001, 6, 0.95, 0.01, 60),
        _Kind(30, 35, "udp", {"domain": 6, "snmp": 3, "other": 1}, {"SF": 1}, 0.1, 75, 120, connections=20, hosts=120),
        _Kind(12, 12, "tcp", {"ftp": 3, "ftp_data": 5}, _FINE, 6, 500, 900, 0.8, 0.05, 0.004, 2, 0.6, 0.03, 25),
        _Kind(8, 9, "tcp", {"telnet": 4, "pop3": 3, "other": 3}, _FINE, 15, 180, 500, 0.75, 0.15, 0.02, 2, 0.6, 0.05),
        _Kind(6, 7, "icmp", {"echo": 5, "other": 2}, {"SF": 1}, 0, 40, 0, connections=3, hosts=10),
    ),
    # floods
    "smurf": (_Kind(520, 480, "icmp", {"echo": 1}, {"SF": 1}, 0, 1000, 0, connections=480, same=1.0, hosts=250),),
    "neptune": (
        _Kind(215, 180, "tcp", {"other": 6, "http": 1, "telnet": 1}, {"S0": 8, "REJ": 2},
              connections=190, same=0.08, errors=0.95, hosts=250),
    ),
    "back": (_Kind(9, 5, "tcp", {"http": 1}, {"SF": 9, "RSTO": 1}, 0.3, 54000, 8300, 0.95, connections=6, hosts=90),),
    "teardrop": (_Kind(4, 1, "udp", {"other": 1}, {"SF": 1}, 0, 28, 0, connections=40, hosts=100),),
    "pod": (_Kind(2, 1, "icmp", {"echo": 3, "other": 1}, {"SF": 1}, 0, 1400, 0, connections=4, hosts=15),),
    "apache2": (
        _Kind(0, 6, "tcp", {"http": 1}, {"SF": 3, "RSTO": 3, "S0": 2}, 2, 30000, 3000, 0.6, connections=15, hosts=200),
    ),
    "mailbomb": (_Kind(0, 12, "tcp", {"smtp": 1}, {"SF": 1}, 0.5, 2600, 300, 1.0, connections=7, hosts=160),),
    # probes
    "satan": (
        _Kind(8, 8, "tcp", {"other": 7, "ftp": 1, "telnet": 1}, {"REJ": 6, "S0": 2, "SF": 2},
              connections=90, same=0.06, errors=0.6, hosts=220),
    ),
    "ipsweep": (_Kind(6, 3, "icmp", {"echo": 7, "other": 2}, {"SF": 1}, 0, 12, 0, connections=2, same=0.9, hosts=120),),
    "portsweep": (
        _Kind(5, 3, "tcp", {"other": 9, "http": 1}, {"RSTO": 5, "REJ": 3, "S0": 1},
              4, 2, 0, connections=3, same=0.5, errors=0.7, hosts=180),
    ),
    "mscan": (
        _Kind(0, 6, "tcp", {"other": 5, "telnet": 2, "domain": 2}, {"REJ": 3, "S0": 3, "SF": 3},
              0.3, 10, 5, connections=12, same=0.25, errors=0.5, hosts=160),
    ),
    # break-ins from outside
    "guess_passwd": (
        _Kind(1.2, 10, "tcp", {"telnet": 3, "pop3": 6}, {"SF": 5, "RSTO": 4}, 2, 90, 200, 0.03, 0.9, connections=2),
    ),
    "warezclient": (_Kind(5, 1, "tcp", {"ftp": 2, "ftp_data": 6}, {"SF": 1}, 12, 420, 2500, 0.9, hosts=30),),
    "imap": (_Kind(0.4, 0.1, "tcp", {"other": 1}, {"SF": 4, "RSTO": 2}, 3, 800, 300, 0.1, connections=2),),
    "snmpgetattack": (
        _Kind(0, 26, "udp", {"snmp": 1}, {"SF": 1}, 0.1, 100, 110, connections=3, same=1.0, hosts=200),
    ),
    "warezmaster": (_Kind(0.3, 5, "tcp", {"ftp": 2, "ftp_data": 3}, {"SF": 1}, 20, 700, 300000, 0.9, hosts=30),),
    # break-ins from inside
    "buffer_overflow": (
        _Kind(0.5, 0.2, "tcp", {"telnet": 3, "ftp_data": 1}, {"SF": 1}, 70, 1400, 4000, 1.0, 0.1, 0.6, 1, 0.9),
    ),
    "rootkit": (_Kind(0.3, 0.2, "tcp", {"telnet": 2, "other": 1}, {"SF": 1}, 60, 500, 1900, 0.8, 0.1, 0.3, 1, 0.9),),
    "httptunnel": (_Kind(0, 0.8, "tcp", {"http": 2, "other": 1}, {"SF": 1}, 300, 900, 2500, 0.7, 0.0, 0.05, 1, 0.8),),
}  # fmt: skip


def generate(rows: int, seed: int = 0, *, test: bool = False) -> Connections:
    """Generate connections; the same seed always gives the same ones.

    Parameters
    ----------
    rows, seed
        The number of rows, and the seed of all random numbers.
    test
        Whether to generate the test part, which has other proportions and new attacks.

    Examples
    --------
    >>> table = generate(1000, seed=1)
    >>> sorted(table.columns) == sorted(COLUMNS), len(table.names)
    (True, 1000)
    >>> table.names.count("smurf") > 400, "mailbomb" in table.names
    (True, False)
    >>> "mailbomb" in generate(1000, seed=1, test=True).names
    True

    """
    if rows < 0:
        raise ConfigurationError(f"{rows} rows cannot be made: give at least 0")
    rng = np.random.default_rng([seed, int(test)])
    kinds = [(name, kind) for name, several in _KINDS.items() for kind in several]
    weights = np.array([kind.test if test else kind.train for _, kind in kinds])
    drawn = rng.choice(len(kinds), rows, p=weights / weights.sum())
    cells = {name: np.zeros(rows, object) for name in COLUMNS}
    for k, (_, kind) in enumerate(kinds):
        here = np.flatnonzero(drawn == k)
        for name, values in _cells(kind, here.size, rng).items():
            cells[name][here] = values
    for column in cells.values():
        wrong = np.flatnonzero(rng.random(rows) < NOISE)
        column[wrong] = column[rng.integers(0, rows, wrong.size)]
    return Connections({name: column.tolist() for name, column in cells.items()}, [kinds[k][0] for k in drawn])


def _cells(kind: _Kind, count: int, rng: np.random.Generator) -> dict[str, list[str]]:
    """Rows of one kind, as strings by column."""

    def about(median: float, spread: float = 0.8) -> list[str]:
        return [f"{value:.0f}" for value in median * np.exp(spread * rng.standard_normal(count))]

    def share(mean: float) -> list[str]:
        return [f"{value:.{DIGITS}f}" for value in rng.beta(8 * mean + 0.1, 8 * (1 - mean) + 0.1, count)]

    def mark(chance: float) -> list[str]:
        return [str(int(value)) for value in rng.random(count) < chance]

    def one_of(weights: dict[str, float]) -> list[str]:
        parts = np.array(list(weights.values()))
        return rng.choice(list(weights), count, p=parts / parts.sum()).tolist()

    return {
        "protocol": [kind.protocol] * count,
        "service": one_of(kind.services),
        "flag": one_of(kind.flags),
        "duration": about(kind.duration, 1.2),
        "bytes_sent": about(kind.sent),
        "bytes_received": about(kind.received),
        "logged_in": mark(kind.logged_in),
        "failed_logins": mark(kind.failed),
        "root_shell": mark(kind.root),
        "connections": about(kind.connections, 0.6),
        "same_service": share(kind.same),
        "errors": share(kind.errors),
        "hosts": [str(min(int(value), 255)) for value in about(kind.hosts, 0.6)],
    }


def write_csv(path: str | os.PathLike[str], table: Connections) -> None:
    """Write connections as CSV, which `lols train classifier --label-map kdd99 --cost-matrix kdd99` reads.

    >>> import tempfile; path = tempfile.mkdtemp() + "/two.csv"
    >>> write_csv(path, generate(2))
    >>> open(path, encoding="utf-8").readline().split(",")[-1].strip()
    'attack'
    """
    try:
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*table.columns, "attack"])
            writer.writerows(zip(*table.columns.values(), table.names, strict=True))
    except OSError as error:
        raise LolsError(f"{os.fspath(path)}: cannot be written ({error.strerror}); name another file") from None
