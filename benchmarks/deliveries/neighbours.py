"""Healthy endpoints beside those of other owners that hang, and alone, in turns."""

from __future__ import annotations

import time
from statistics import median

from benchmarks.deliveries.bench import Bench
from benchmarks.deliveries.environments import ScratchEnvironment
from benchmarks.machine import until
from benchmarks.results import ms, percentile

HEALTHY, ENDPOINTS = 1_000, 20
HANGING = {"one": (100, 800), "other": (100, 800)}  # endpoints and deliveries by owner


def neighbours(bench: Bench) -> None:
    """Time from the start of a dispatcher to the arrival at healthy receivers."""
    for scratch in bench.environments:
        rounds = [
            [_arrivals(bench, scratch, beside=beside) for beside in (False, True)]
            for _ in range(bench.options.rounds)
        ]
        title = f"{HEALTHY:,} deliveries beside 200 endpoints that hang, {scratch.name}"
        rows = bench.tables[title] = {}
        for percent in (50, 90):
            pairs = [[percentile(each, percent) for each in pair] for pair in rounds]
            rows[f"p{percent}"] = {
                "without them": ms(median(alone for alone, _ in pairs)),
                "beside them": ms(median(beside for _, beside in pairs)),
                "ratio": median(beside / alone for alone, beside in pairs),
            }


def _arrivals(
    bench: Bench, scratch: ScratchEnvironment, *, beside: bool
) -> list[float]:
    """Return when each healthy delivery arrived, in seconds from the start."""
    receiver = bench.receiver
    scratch.job_process().do("clear")
    for owner, group in HANGING.items() if beside else ():
        scratch.fill((receiver.url("after/60000"), *group), empty=False, owner=owner)
    scratch.fill((receiver.url("timed"), ENDPOINTS, HEALTHY), empty=False)
    receiver.stats("reset")
    at = time.monotonic() + 0.1
    scratch.job_process(1).begin("dispatch_all", at=at)
    until(lambda: len(receiver.stats()["began"]) >= HEALTHY, "the healthy", every_s=0.1)
    if beside:
        scratch.kill_job_process(1)  # no process waits for those that hang
        scratch.job_process(1).do("state")
    else:
        scratch.job_process(1).end()
    arrivals = [began - at for began in receiver.stats()["began"].values()]
    bench.say(f"{scratch.name}, beside={beside}: p90 {percentile(arrivals, 90):.2f} s")
    return arrivals
