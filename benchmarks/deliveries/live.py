"""Whole clusters: latency, and deliveries lost by kill -9."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from statistics import median

from benchmarks.deliveries.bench import Bench
from benchmarks.deliveries.environments import JobProcess, ScratchEnvironment
from benchmarks.machine import Program, running, until
from benchmarks.results import ms, percentile

PERCENTS = (50, 95, 99)
CLUSTER = (sys.executable, "manage.py", "qcluster")
PLACES = 8


class Setting:
    """A database with a broker: where clusters run and job processes publish."""

    def __init__(self, bench: Bench, scratch: ScratchEnvironment, redis: str) -> None:
        self.name = f"{'Redis' if redis else 'ORM broker'}, {scratch.name}"
        self._scratch = scratch
        slug = f"{scratch.name}-{'redis' if redis else 'orm'}"
        self._log = bench.folder / f"{slug}.log"
        names = {"BENCH_NAME": f"{bench.name}-{slug}", "REDIS_URL": redis}
        self._environment = scratch.environment | names

    @contextmanager
    def job_process(self) -> Iterator[JobProcess]:
        job_process = JobProcess(self._environment, self._log)
        try:
            yield job_process
        finally:
            job_process.kill()

    def cluster(self) -> AbstractContextManager[Program]:
        """Run `manage.py qcluster`; what is left of it at the end is killed."""
        return running(CLUSTER, self._environment, self._log)

    def create_endpoints(self, *urls: str) -> None:
        """Empty the database, and create an endpoint for each of these URLs."""
        self._scratch.fill(*((url, 1, 0) for url in urls))


def settings(bench: Bench) -> list[Setting]:
    """Return the embedded setting, and PostgreSQL and Redis if they are available."""
    found = [Setting(bench, bench.sqlite, "")]
    if bench.postgres or bench.redis:
        found.append(Setting(bench, bench.postgres or bench.sqlite, bench.redis))
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
        with setting.cluster(), setting.job_process() as publisher:
            setting.create_endpoints(url)
            # The first one finds a cluster that has just started.
            publisher.do("publish_now_and_then", times=2, pause_s=1.0)
            committed = publisher.do("publish_now_and_then", **given)
            spans_by_name[setting.name] = _spans(bench, committed)
        bench.say(f"{setting.name}: p50 {ms(median(spans_by_name[setting.name]))}")
    title = "From the commit to the receiver's first byte, idle system"
    bench.tables[title] = {
        name: {f"p{percent}": ms(percentile(spans, percent)) for percent in PERCENTS}
        for name, spans in spans_by_name.items()
    }


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
    bench.tables["kill -9 of the whole tree"] = {
        setting.name: _kill(bench, setting) for setting in settings(bench)
    }


def _kill(bench: Bench, setting: Setting) -> dict[str, float | str]:
    events = bench.options.either(40, 400)
    total = events * PLACES
    setting.create_endpoints(
        *(bench.receiver.url(f"seen/20/{n}") for n in range(PLACES))
    )
    bench.receiver.stats("reset")
    with setting.job_process() as publisher:
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
        "sent twice": sum(seen.values()) - len(seen),
        "lost": total - len(seen),
        "claimed at the kill": claimed,
    }
