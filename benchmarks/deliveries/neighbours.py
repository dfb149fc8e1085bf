"""Healthy endpoints beside those of other owners that hang, and alone, in turns."""

from __future__ import annotations

import time
from typing import NamedTuple

from benchmarks.deliveries.bench import Bench, median, ms, percentile
from benchmarks.deliveries.environments import ScratchEnvironment, until
from benchmarks.deliveries.report import Table

HEALTHY, ENDPOINTS = 1_000, 20
PERCENTS = (50, 90)


class Neighbours(NamedTuple):
    """Endpoints that never answer, in equal parts of two owners."""

    endpoints: int
    deliveries: int
    size: int


SCENARIOS = {
    "200 endpoints that hang": Neighbours(200, 1_600, 1024),
    "10 endpoints that hang, bodies of 1 MB": Neighbours(10, 80, 1_000_000),
}


def neighbours(bench: Bench) -> None:
    """Time from the start of a dispatcher to the arrival at healthy receivers."""
    for scratch in bench.environments:
        for name, hanging in SCENARIOS.items():
            _compare(bench, scratch, name, hanging)


def _compare(
    bench: Bench, scratch: ScratchEnvironment, name: str, hanging: Neighbours
) -> None:
    rounds = [
        (_arrivals(bench, scratch, None), _arrivals(bench, scratch, hanging))
        for _ in range(bench.options.rounds)
    ]
    rows = []
    for percent in PERCENTS:
        pairs = [
            (percentile(alone, percent), percentile(beside, percent))
            for alone, beside in rounds
        ]
        ratio = median([beside / alone for alone, beside in pairs])
        times = (median([pair[side] for pair in pairs]) for side in (0, 1))
        rows.append((f"p{percent}", *map(ms, times), f"{ratio:.2f}"))
    title = f"{HEALTHY:,} deliveries to {ENDPOINTS} receivers, {scratch.name}: {name}"
    columns = ("", "without them", "beside them", "ratio")
    bench.report.tables.append(Table(title, columns, rows))


def _arrivals(
    bench: Bench, scratch: ScratchEnvironment, hanging: Neighbours | None
) -> list[float]:
    """Return when each healthy delivery arrived, in seconds from the start."""
    url = bench.receiver.url
    scratch.job_process().do("clear")
    for owner in ("one", "other") if hanging else ():
        endpoints, deliveries, size = hanging or Neighbours(0, 0, 0)
        group = (url("after/60000"), endpoints // 2, deliveries // 2)
        scratch.fill(group, size=size, empty=False, owner=owner)
    scratch.fill((url("timed"), ENDPOINTS, HEALTHY), empty=False)
    bench.receiver.reset()
    at = time.monotonic() + 0.1
    scratch.job_process(1).begin("dispatch_all", at=at)
    until(
        lambda: len(bench.receiver.stats()["began"]) >= HEALTHY,
        f"{HEALTHY} deliveries",
        every_s=0.1,
    )
    if hanging:
        scratch.kill_hand(1)  # no process waits for those that hang
        scratch.job_process(1).do("state")
    else:
        scratch.job_process(1).end()
    arrivals = [began - at for began in bench.receiver.stats()["began"].values()]
    bench.say(f"{scratch.name}, {hanging}: p90 {percentile(arrivals, 90):.2f} s")
    return arrivals
