"""Whole clusters and instances: latency, deliveries lost by kill -9, and the cost of a request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.deliveries.bench import Bench, median, ms, percentile
from benchmarks.deliveries.environments import (
    JobProcess,
    ScratchEnvironment,
    until,
)
from benchmarks.deliveries.process_tree import Worker
from benchmarks.deliveries.report import Table

PERCENTS = (50, 95, 99)
CLUSTER = ("manage.py", "qcluster")
PLACES = 8


class Setting:
    """A database with a broker: where clusters run and job processes publish."""

    def __init__(
        self, bench: Bench, scratch: ScratchEnvironment, *, redis: bool
    ) -> None:
        self.name = f"{'Redis' if redis else 'ORM broker'}, {scratch.name}"
        self._scratch = scratch
        self._slug = f"{scratch.name}-{'redis' if redis else 'orm'}"
        self._folder = bench.folder
        self.environment = scratch.environment | {
            "BENCH_NAME": f"{bench.name}-{self._slug}",
            "REDIS_URL": bench.redis if redis else "",
        }

    def job_process(self) -> JobProcess:
        return JobProcess(
            self.environment, self._folder / f"{self._slug}-job_process.log"
        )

    @contextmanager
    def cluster(self) -> Iterator[Worker]:
        """Run `manage.py qcluster`, and kill what is left of it at the end."""
        log = self._folder / f"{self._slug}-cluster.log"
        worker = Worker(CLUSTER, self.environment, log)
        try:
            yield worker
        finally:
            worker.kill()

    def create_endpoints(self, *urls: str) -> None:
        """Empty the database, and create an endpoint for each of these URLs."""
        self._scratch.fill(*((url, 1, 0) for url in urls))


def settings(bench: Bench) -> list[Setting]:
    """Return the embedded setting, and PostgreSQL and Redis if they are available."""
    found = [Setting(bench, bench.sqlite, redis=False)]
    if bench.postgres:
        found.append(Setting(bench, bench.postgres, redis=bool(bench.redis)))
    elif bench.redis:
        found.append(Setting(bench, bench.sqlite, redis=True))
    return found


def latency(bench: Bench) -> None:
    """Time events from their commit to the receiver's first byte on an idle system."""
    times, pause_s = bench.options.either(6, 100), 0.3
    given = {"times": times, "pause_s": pause_s}
    job_process, url = bench.sqlite.job_process(1), bench.receiver.url("timed")
    spans_by_name = {
        "bare POST": _spans(
            bench, job_process.do("post_now_and_then", url=url, **given)
        )
    }
    for setting in settings(bench):
        with setting.cluster(), _job_process(setting) as publisher:
            setting.create_endpoints(url)
            # The first one finds a cluster that has just started.
            publisher.do("publish_now_and_then", times=2, pause_s=1.0)
            committed = publisher.do("publish_now_and_then", **given)
            spans_by_name[setting.name] = _spans(bench, committed)
        bench.say(f"{setting.name}: p50 {ms(median(spans_by_name[setting.name]))}")
    rows = [
        (name, *(ms(percentile(spans, percent)) for percent in PERCENTS))
        for name, spans in spans_by_name.items()
    ]
    columns = ("", *(f"p{percent}" for percent in PERCENTS))
    title = "From the commit to the receiver's first byte, idle system"
    bench.report.tables.append(Table(title, columns, rows))


@contextmanager
def _job_process(setting: Setting) -> Iterator[JobProcess]:
    job_process = setting.job_process()
    try:
        yield job_process
    finally:
        job_process.kill()


def _spans(bench: Bench, begun: dict[str, float]) -> list[float]:
    """Return the seconds from each beginning to the first byte at the receiver."""
    until(
        lambda: begun.keys() <= bench.receiver.stats()["began"].keys(),
        "the last event",
        every_s=0.1,
    )
    arrived = bench.receiver.stats("reset")["began"]
    return [arrived[event] - at for event, at in begun.items()]


def kill(bench: Bench) -> None:
    """Kill a whole cluster in mid-run, start it again, and count the deliveries of each event."""
    rows = []
    for setting in settings(bench):
        counts = _kill(bench, setting)
        rows.append((setting.name, *(f"{count:,}" for count in counts.values())))
    columns = (
        "",
        "published",
        "delivered",
        "sent twice",
        "lost",
        "claimed at the kill",
    )
    bench.report.tables.append(Table("kill -9 of the whole tree", columns, rows))


def _kill(bench: Bench, setting: Setting) -> dict[str, int]:
    events = bench.options.either(40, 400)
    total = events * PLACES
    setting.create_endpoints(
        *(bench.receiver.url(f"seen/20/{n}") for n in range(PLACES))
    )
    bench.receiver.reset()
    with _job_process(setting) as publisher:
        with setting.cluster() as cluster:
            publisher.begin("publish_many", count=events)
            until(lambda: bench.receiver.answered("seen") > total // 5, "a fifth")
            cluster.kill()
            publisher.end()
        claimed = publisher.do("state")["claimed"]
        with setting.cluster():
            until(lambda: publisher.do("state")["waiting"] == 0, "the rest")
    seen = bench.receiver.stats()["seen"]
    return {
        "published": total,
        "delivered": len(seen),
        "twice": sum(seen.values()) - len(seen),
        "lost": total - len(seen),
        "claimed": claimed,
    }
