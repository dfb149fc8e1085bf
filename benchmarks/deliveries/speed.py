"""Deliveries per second of a bare HTTP client, Signpost and other task queues, in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from benchmarks.deliveries.bench import Bench, median
from benchmarks.deliveries.environments import BenchError, ScratchEnvironment
from benchmarks.deliveries.peers.running import Measured, peers
from benchmarks.deliveries.report import Table

SIZES = {"1 KB": 1024, "50 KB": 50 * 1024}
OURS = "Signpost, SQLite, 1 dispatcher"
OURS_POSTGRES = "Signpost, PostgreSQL, 1 dispatcher"
BARE = ("bare aiohttp", "bare aiohttp, two processes")


class Measurement(NamedTuple):
    """One measurement; `cpu` is that of the senders, in seconds per delivery.

    `server_cpu` is that of the database servers.
    """

    rate: float
    cpu: float
    server_cpu: float = 0.0


class Contender(NamedTuple):
    """`against` is the limit that it is compared with: that of as many processes."""

    run: Callable[[], Measurement]
    against: str


def combine(measured: list[dict[str, float]]) -> Measurement:
    count = sum(row["count"] for row in measured)
    seconds = max(row["seconds"] for row in measured)
    return Measurement(count / seconds, sum(row["cpu"] for row in measured) / count)


def bare(
    bench: Bench,
    job: str,
    size: int,
    count: int,
    processes: int = 1,
    *,
    path: str = "ok",
    in_flight: int = 0,
) -> Measurement:
    """Post by a bare loop, as many in flight in all processes together as Signpost has."""
    job_processes = [
        bench.sqlite.job_process(1 + number) for number in range(processes)
    ]
    at = time.monotonic() + 1.0
    for job_process in job_processes:
        job_process.begin(
            job,
            url=bench.receiver.url(path),
            count=count // processes,
            size=size,
            in_flight=(in_flight or bench.in_flight) // processes,
            at=at,
        )
    return combine([job_process.end() for job_process in job_processes])


def signpost(
    bench: Bench,
    scratch: ScratchEnvironment,
    size: int,
    count: int,
    dispatchers: int = 1,
) -> Measurement:
    scratch.fill(bench.waits("ok", count), size=size)
    before = bench.servers.cpu()
    result = combine(scratch.dispatch(dispatchers))
    result = result._replace(server_cpu=(bench.servers.cpu() - before) / count)
    left = scratch.job_process().do("state")
    if left["delivered"] != count:
        raise BenchError(f"not all was delivered: {left}")
    return result


def speed(bench: Bench) -> None:
    """Let the bare loops and Signpost take turns, and print the median of each."""
    for name, size in SIZES.items():
        contenders = _contenders(bench, size)
        results = _rounds(bench, name, contenders)
        _tell(bench, name, results, contenders)


def other_queues(bench: Bench) -> None:
    """Let other task queues take turns with one dispatcher, a process each."""
    ours = {
        name: it
        for name, it in _contenders(bench, 1024).items()
        if name in {BARE[0], OURS, OURS_POSTGRES}
    }
    with peers(bench) as runners:
        theirs = {
            name: Contender(partial(_peer, runner.measure), BARE[0])
            for name, runner in runners.items()
        }
        contenders = ours | theirs
        results = _rounds(bench, "1 KB", contenders)
    _tell(bench, "1 KB, one process each", results, contenders)


def _peer(measure: Callable[[], Measured]) -> Measurement:
    return Measurement(*measure())


def _contenders(bench: Bench, size: int) -> dict[str, Contender]:
    # Seconds of work: in a shorter run the start and the end of a dispatcher take a tenth.
    count = bench.options.either(400, 24_000 if size == 1024 else 5_000)
    found = {BARE[0]: Contender(lambda: bare(bench, "bare_aiohttp", size, count), "")}
    if bench.options.dispatchers > 1:
        found[BARE[1]] = Contender(
            lambda: bare(bench, "bare_aiohttp", size, count, 2), ""
        )
    for scratch in bench.environments:
        for dispatchers in range(1, bench.options.dispatchers + 1):
            if dispatchers > 1 and scratch is bench.sqlite:
                continue  # SQLite has one writer, and one dispatcher by its settings
            label = f"Signpost, {scratch.name}, {dispatchers} dispatcher{'s'[: dispatchers > 1]}"
            found[label] = Contender(
                partial(signpost, bench, scratch, size, count, dispatchers),
                BARE[dispatchers > 1],
            )
    return found


def _rounds(
    bench: Bench, size: str, contenders: Mapping[str, Contender]
) -> dict[str, list[Measurement]]:
    results: dict[str, list[Measurement]] = {name: [] for name in contenders}
    for number in range(bench.options.rounds):
        for name, contender in contenders.items():
            result = contender.run()
            results[name].append(result)
            bench.say(f"{size}, round {number + 1}: {name}: {result.rate:,.0f}/s")
    return results


def ratio(
    results: Mapping[str, list[Measurement]],
    name: str,
    other: str,
    *,
    cpu: bool = False,
) -> float:
    """Return the median of the ratios within each round."""
    pairs = zip(results[name], results[other], strict=True)
    return median([a.cpu / b.cpu if cpu else a.rate / b.rate for a, b in pairs])


def _tell(
    bench: Bench,
    size: str,
    results: Mapping[str, list[Measurement]],
    contenders: Mapping[str, Contender],
) -> None:
    rows = []
    for name, rounds in results.items():
        against = contenders[name].against
        rows.append(
            (
                name,
                f"{median([row.rate for row in rounds]):,.0f}",
                f"{ratio(results, name, against):.2f}" if against else "1",
                f"{median([row.cpu for row in rounds]) * 1e3:.2f} ms",
                f"{ratio(results, name, BARE[0], cpu=True):.1f}",
            )
        )
    columns = ("", "deliveries/s", "of the bare loop", "CPU/delivery", "times bare")
    bench.report.tables.append(Table(f"Deliveries of {size}", columns, rows))
