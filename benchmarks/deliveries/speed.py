"""Deliveries per second of a bare HTTP client, Signpost and other task queues, in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import NamedTuple

from benchmarks.deliveries.bench import Bench
from benchmarks.deliveries.environments import ScratchEnvironment
from benchmarks.deliveries.peers import peers
from benchmarks.machine import BenchError
from benchmarks.results import ms

ENDPOINTS = 64
IN_FLIGHT = 4 * ENDPOINTS  # what Signpost has at most
SIZES = {"1 KB": 1024, "50 KB": 50 * 1024}
OURS = "Signpost, SQLite, 1 dispatcher"
OURS_POSTGRES = "Signpost, PostgreSQL, 1 dispatcher"
BARE = ("bare aiohttp", "bare aiohttp, two processes")


class Measurement(NamedTuple):
    """Deliveries per second, and the seconds of CPU of the senders for each."""

    rate: float
    cpu: float


class Contender(NamedTuple):
    """`against` is the limit that it is compared with: that of as many processes."""

    run: Callable[[], Measurement]
    against: str


def combine(measured: list[dict[str, float]]) -> Measurement:
    count = sum(row["count"] for row in measured)
    seconds = max(row["seconds"] for row in measured)
    return Measurement(count / seconds, sum(row["cpu"] for row in measured) / count)


def bare(bench: Bench, size: int, count: int, processes: int) -> Measurement:
    """Post by bare loops, as many in flight in all of them together as Signpost has."""
    loops = [bench.sqlite.job_process(1 + number) for number in range(processes)]
    given = {
        "url": bench.receiver.url(),
        "count": count // processes,
        "size": size,
        "in_flight": IN_FLIGHT // processes,
        "at": time.monotonic() + 1.0,
    }
    for loop in loops:
        loop.begin("bare_aiohttp", **given)
    return combine([loop.end() for loop in loops])


def signpost(
    bench: Bench, scratch: ScratchEnvironment, size: int, count: int, dispatchers: int
) -> Measurement:
    scratch.fill((bench.receiver.url(), ENDPOINTS, count), size=size)
    result = combine(scratch.dispatch(dispatchers))
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


def _peer(measure: Callable[[], tuple[float, float]]) -> Measurement:
    return Measurement(*measure())


def _contenders(bench: Bench, size: int) -> dict[str, Contender]:
    # Seconds of work: in a shorter run the start and the end of a dispatcher take a tenth.
    count = bench.options.either(400, 24_000 if size == 1024 else 5_000)
    found = {
        name: Contender(partial(bare, bench, size, count, processes), "")
        for processes, name in enumerate(BARE, start=1)
    }
    for scratch in bench.environments:
        # SQLite has one writer, and one dispatcher by its settings.
        for number in (1,) if scratch is bench.sqlite else (1, 2):
            label = f"Signpost, {scratch.name}, {number} dispatcher{'s'[: number > 1]}"
            run = partial(signpost, bench, scratch, size, count, number)
            found[label] = Contender(run, BARE[number - 1])
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


def _tell(
    bench: Bench,
    size: str,
    results: Mapping[str, list[Measurement]],
    contenders: Mapping[str, Contender],
) -> None:
    rows = bench.tables[f"Deliveries of {size}"] = {}
    for name, rounds in results.items():
        against = results[contenders[name].against or name]
        bare_loop = results[BARE[0]]
        rows[name] = {
            "deliveries/s": median(row.rate for row in rounds),
            "of the bare loop": _ratio(
                [row.rate for row in rounds], [row.rate for row in against]
            ),
            "CPU/delivery": ms(median(row.cpu for row in rounds)),
            "times bare": _ratio(
                [row.cpu for row in rounds], [row.cpu for row in bare_loop]
            ),
        }


def _ratio(ours: list[float], theirs: list[float]) -> float:
    """Return the median of the ratios within each round."""
    return median(one / other for one, other in zip(ours, theirs, strict=True))
