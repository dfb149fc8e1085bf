"""What waiting costs: hanging and slow receivers, large bodies, long backlogs, large fan-outs."""

from __future__ import annotations

import time
from collections.abc import Sequence

from benchmarks.deliveries.bench import MAX_IN_FLIGHT, Bench, median, ms
from benchmarks.deliveries.environments import ScratchEnvironment
from benchmarks.deliveries.report import Table
from benchmarks.deliveries.speed import Measurement, bare, combine

HEALTHY, HUNG = 1_000, 64
HANG_MS = 5_000
HEALTHY_ENDPOINTS = 20
SLOW_MS, SLOW_ENDPOINTS = 100, 200
BODY = 1024 * 1024


def isolation(bench: Bench) -> None:
    """Time healthy receivers behind a hanging one, and alone."""
    rows = []
    for scratch in bench.environments:
        pairs = [
            (_healthy(bench, scratch, hung=0), _healthy(bench, scratch, hung=HUNG))
            for _ in range(bench.options.rounds)
        ]
        alone, beside = median([a for a, _ in pairs]), median([b for _, b in pairs])
        ratio = median([b / a for a, b in pairs])
        rows.append((scratch.name, ms(alone), ms(beside), f"{ratio:.2f}"))
        bench.report.figures.setdefault("isolation", {})[scratch.name] = pairs
        what = f"healthy receivers beside a hanging one, {scratch.name}"
        bench.report.at_most(what, ratio, 1.3, "times")
    title = f"{HEALTHY:,} deliveries to {HEALTHY_ENDPOINTS} receivers, {HUNG} before them to one that hangs {HANG_MS / 1000:g} s"
    columns = ("", "without the hang", "with it", "ratio")
    bench.report.tables.append(Table(title, columns, rows))


def _healthy(bench: Bench, scratch: ScratchEnvironment, *, hung: int) -> float:
    """Return the seconds until all healthy receivers have answered."""
    url = bench.receiver.url
    groups = [(url("ok"), HEALTHY_ENDPOINTS, HEALTHY)]
    if hung:
        groups.insert(0, (url(f"after/{HANG_MS}"), 1, hung))
    scratch.fill(*groups)
    bench.receiver.reset()
    at = time.monotonic() + 0.1
    scratch.job_process(1).begin("dispatch_all", at=at)
    seconds = bench.receiver.wait_for(HEALTHY) - at
    if hung:
        scratch.kill_hand(1)  # no process waits for the hanging ones
        scratch.job_process(1).do("state")
    else:
        scratch.job_process(1).end()
    bench.say(f"{scratch.name}: {HEALTHY} healthy, {hung} hung: {seconds:.2f} s")
    return seconds


def slow(bench: Bench) -> None:
    """Send to many receivers that take their time, beside the bare loop."""
    count = bench.options.either(1_000, 8_000)
    pairs: list[tuple[Measurement, Measurement]] = []
    group = (bench.receiver.url(f"after/{SLOW_MS}"), SLOW_ENDPOINTS, count)
    for _ in range(bench.options.rounds):
        limit = bare(
            bench,
            "bare_aiohttp",
            1024,
            count,
            path=f"after/{SLOW_MS}",
            in_flight=MAX_IN_FLIGHT,
        )
        bench.sqlite.fill(group)
        pairs.append((limit, combine(bench.sqlite.dispatch())))
    bare_rate, ours = (median([pair[n].rate for pair in pairs]) for n in (0, 1))
    ratio = median([b.rate / a.rate for a, b in pairs])
    bench.report.figures["slow"] = [[a._asdict(), b._asdict()] for a, b in pairs]
    rows = [
        ("bare aiohttp", f"{bare_rate:,.0f}", "1"),
        ("Signpost, SQLite, 1 dispatcher", f"{ours:,.0f}", f"{ratio:.2f}"),
    ]
    title = f"{SLOW_ENDPOINTS} endpoints that answer after {SLOW_MS} ms"
    columns = ("", "deliveries/s", "of the bare loop")
    note = f"At most {MAX_IN_FLIGHT} in flight, in the bare loop too."
    bench.report.tables.append(Table(title, columns, rows, note))
    what = "endpoints that answer after 100 ms, of bare aiohttp"
    bench.report.at_least(what, ratio, 0.9, "")


def memory(bench: Bench) -> None:
    """Take the peak of a dispatcher's memory while large bodies wait."""
    count = bench.options.either(100, 2_000)
    scratch = bench.sqlite
    group = bench.waits("ok", 100)
    endpoints = (group[0], group[1], min(100, count))
    scratch.fill(endpoints, size=BODY)
    for _ in range(count // 100 - 1):
        # In parts, because this process must not need 2 GB either.
        scratch.fill(endpoints, size=BODY, empty=False)
    bench.say(f"{count} bodies of 1 MiB wait")
    [report] = scratch.dispatch()
    peak = report["peak"] / 1e6
    bench.report.figures["memory"] = {"bodies": count, "peak": report["peak"]}
    rows = [
        (f"{count:,}", f"{peak:.0f} MB", f"{report['count'] / report['seconds']:,.0f}")
    ]
    columns = ("bodies of 1 MiB", "peak of the dispatcher", "deliveries/s")
    bench.report.tables.append(Table("Memory", columns, rows))
    bench.report.at_most("memory of the dispatcher", peak, 200, "MB")
    scratch.job_process().do("clear")


def publishing(bench: Bench) -> None:
    """Time publish(), its commit and its wake-up."""
    rows = []
    times = bench.options.either(10, 100)
    for scratch in bench.environments:
        for endpoints in (5, 1_000):
            took: Sequence[float] = scratch.job_process().do(
                "publish_cost",
                url=bench.receiver.url(),
                endpoints=endpoints,
                times=times if endpoints == 5 else times // 5,
            )
            per_row = median(took) / endpoints
            rows.append(
                (scratch.name, f"1 to {endpoints:,}", ms(median(took)), ms(per_row))
            )
            key = f"{scratch.name} 1 x {endpoints}"
            bench.report.figures.setdefault("publishing", {})[key] = took
    columns = ("database", "event to endpoints", "publish()", "per delivery")
    note = "Of 1,000 deliveries publish() makes 500; the dispatcher creates the others."
    table = Table("Publishing", columns, rows, note)
    bench.report.tables.append(table)


def claims(bench: Bench) -> None:
    """Time a claim at growing backlogs."""
    sizes = (1_000, 100_000) if bench.options.quick else (1_000, 100_000, 1_000_000)
    rows = []
    for scratch in bench.environments:
        scratch.job_process().do("clear")
        durations = [_claim(bench, scratch, size) for size in sizes]
        ratio = durations[-1] / durations[0]
        rows.append((scratch.name, *map(ms, durations), f"{ratio:.2f}"))
        figures = dict(zip(map(str, sizes), durations, strict=True))
        bench.report.figures.setdefault("claims", {})[scratch.name] = figures
        what = f"claim at {sizes[-1]:,} waiting, of that at 1,000, {scratch.name}"
        bench.report.at_most(what, ratio, 2, "times")
        scratch.job_process().do("clear")
    columns = ("", *(f"{size:,} waiting" for size in sizes), "last / first")
    bench.report.tables.append(Table("A claim", columns, rows))


def _claim(bench: Bench, scratch: ScratchEnvironment, waiting: int) -> float:
    rows = scratch.job_process().do(
        "grow",
        url=bench.receiver.url(),
        endpoints=bench.options.endpoints,
        waiting=waiting,
    )
    found = scratch.job_process().do("claim_cost", times=bench.options.either(10, 50))
    seconds = median(found["seconds"])
    size = median(found["sizes"])
    bench.say(f"{scratch.name}: {rows:,} waiting: {size:g} claimed in {ms(seconds)}")
    return seconds
