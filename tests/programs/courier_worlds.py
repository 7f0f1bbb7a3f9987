"""Orders to couriers on a street: as a program that chooses among its couriers, and as a task that is alike."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

import lols
from lols import emit, feature
from lols.programs.feature_ids import feature_id

WAITS, AWAY, LATE = (feature_id(name) for name in ("waits", "away", "late"))
BUSY, IDLE = (feature_id(("idle", flag)) for flag in (False, True))
EVEN, ODD = (feature_id(("odd", flag)) for flag in (False, True))


def days(count: int, orders: int = 6, seed: int = 0, couriers: int = 0) -> list[dict[str, Any]]:
    """Days with two to four couriers, or with so many."""
    rng = np.random.default_rng(seed)
    return [
        {
            "couriers": couriers or int(rng.integers(2, 5)),
            "time": rng.integers(1, 6, orders).cumsum().tolist(),
            "place": rng.integers(0, 30, orders).tolist(),
            "work": rng.integers(5, 21, orders).tolist(),
        }
        for _ in range(count)
    ]


def nearest(away: dict[Any, int]) -> dict[str, Any]:
    """The rule."""
    return {"reference": min(away, key=away.__getitem__)}


def program(
    shared: bool = False,
    teach: Any = nearest,
    keyed: bool = False,
    name: Any = lambda c: c,
    lazy: bool = False,
) -> lols.Program:
    """The program.

    `teach(distances)` gives the arguments of `choose` that the teacher needs, `name` the candidates; with `lazy`,
    functions give their features.
    """

    def run(search: Any, x: Any) -> list[int]:
        couriers = [name(c) for c in range(x["couriers"])]
        number = {courier: c for c, courier in enumerate(couriers)}
        free, at, made = [0] * len(couriers), [0] * len(couriers), list[int]()

        def sees(courier: Any) -> dict[str, Any]:  # of the order that has come in
            c = number[courier]
            return {"waits": waits[courier] / 30, "away": away[courier] / 30, "idle": free[c] <= time}

        def beside() -> Any:
            return {"late": i / 8, "odd": i % 2 == 1} if shared else ()

        for i, (time, place, work) in enumerate(zip(x["time"], x["place"], x["work"], strict=True)):
            away = {courier: abs(at[c] - place) for courier, c in number.items()}
            waits = {courier: max(free[c] - time, 0) + away[courier] for courier, c in number.items()}
            courier = search.choose(
                {courier: partial(sees, courier) if lazy else sees(courier) for courier in couriers},
                **(teach(away) if search.learning else {}),
                shared=beside if lazy else beside(),
                key=(i, *free, *at) if keyed else None,
            )
            search.loss(waits[courier])
            free[number[courier]], at[number[courier]] = time + waits[courier] + work, place
            made.append(number[courier])
        return made

    return lols.Program(run)


def wait(x, s, c):
    return max(s.free[c] - x.time[s.order], 0) + abs(s.at[c] - x.place[s.order])


class Couriers(lols.Task):
    """The same decisions and features; with the setting `shared`, those of the decision as well."""

    settings: ClassVar = {"shared": 0}
    sizes = lols.Sizes(
        state=lols.State(order=int, late=int, free="couriers", at="couriers", made=lambda x: len(x.time)),
        actions="couriers",
        features=0,
        action_features=9,
        steps=lambda x: len(x.time),
    )
    columns = lols.Columns(x=["couriers", "time", "place", "work"])
    needs_truth = False

    def actions(x, s, legal):
        legal[: x.couriers] = s.order < len(x.time)

    def step(x, s, a):
        late = wait(x, s, a)
        s.late += late
        s.free[a] = x.time[s.order] + late + x.work[s.order]
        s.at[a] = x.place[s.order]
        s.made[s.order] = a
        s.order += 1

    def action_features(x, s, a, out):
        waits, away = wait(x, s, a) / 30, abs(s.at[a] - x.place[s.order]) / 30
        idle = IDLE if s.free[a] <= x.time[s.order] else BUSY
        emit(out, WAITS, waits)
        emit(out, AWAY, away)
        emit(out, idle)
        if x.shared:
            late, odd = s.order / 8, ODD if s.order % 2 == 1 else EVEN
            emit(out, feature(WAITS, LATE), waits * late)
            emit(out, feature(WAITS, odd), waits)
            emit(out, feature(AWAY, LATE), away * late)
            emit(out, feature(AWAY, odd), away)
            emit(out, feature(idle, LATE), late)
            emit(out, feature(idle, odd))

    def loss(x, y, s):
        return s.late

    def output(x, s):
        return s.made.tolist()

    def reference(x, y, s):
        best = 0
        for c in range(x.couriers):
            if abs(s.at[c] - x.place[s.order]) < abs(s.at[best] - x.place[s.order]):
                best = c
        return best


class PaidAtOnce(Couriers):
    """The same, with the loss of each step."""

    def cost(x, y, s, a):
        return wait(x, s, a)


def equally_near(x, y, s, out):
    """A set of good actions: all couriers that are as near as can be."""
    least = 1000
    for c in range(x.couriers):
        least = min(least, abs(s.at[c] - x.place[s.order]))
    for c in range(x.couriers):
        out[c] = abs(s.at[c] - x.place[s.order]) == least


def distances(x, y, s, out):
    """Costs, as if in closed form."""
    for c in range(x.couriers):
        out[c] = abs(s.at[c] - x.place[s.order])


def either(x, y, s, rng):
    """A rule that draws at random."""
    return 0 if lols.uniform(rng) < 0.5 else 1
