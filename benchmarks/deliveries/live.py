"""Whole clusters and instances: latency, deliveries lost by kill -9, and the cost of a request."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import requests

from benchmarks.deliveries.bench import Bench, median, ms, percentile
from benchmarks.deliveries.environments import (
    JobProcess,
    ScratchEnvironment,
    environment,
    free_port,
    until,
)
from benchmarks.deliveries.peers.running import PATIENCE_S, interrupted, peers
from benchmarks.deliveries.process_tree import Worker
from benchmarks.deliveries.report import Table

PERCENTS = (50, 95, 99)
CLUSTER = ("manage.py", "qcluster")
PLACES = 8
LISTENERS = {"no subscriber": "", "a healthy one": "ok", "a hanging one": "after/5000"}


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
    bench.report.figures["latency"] = spans_by_name
    bench.report.saved["latency"] = {
        name: {
            f"p{percent}, ms": percentile(spans, percent) * 1e3 for percent in PERCENTS
        }
        for name, spans in spans_by_name.items()
    }
    bare = median(spans_by_name["bare POST"])
    for setting in settings(bench):
        added = (median(spans_by_name[setting.name]) - bare) * 1e3
        wanted = 6 if setting.name.startswith("Redis") else 15
        what = f"latency p50 above the bare POST, {setting.name}"
        bench.report.at_most(what, added, wanted, "ms")


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
    rows, saved = [], bench.report.saved.setdefault("kill", {})
    for setting in settings(bench):
        counts = _kill(bench, setting)
        bench.report.figures.setdefault("kill", {})[setting.name] = counts
        rows.append((setting.name, *(f"{count:,}" for count in counts.values())))
        saved[f"Signpost, {setting.name}"] = _kill_cells(counts)
        bench.report.at_most(f"lost by kill -9, {setting.name}", counts["lost"], 0, "")
        what = f"sent twice after kill -9, {setting.name}"
        bench.report.at_most(what, counts["twice"], counts["claimed"], "")
    columns = (
        "",
        "published",
        "delivered",
        "sent twice",
        "lost",
        "claimed at the kill",
    )
    bench.report.tables.append(Table("kill -9 of the whole tree", columns, rows))


def kill_others(bench: Bench) -> None:
    """Kill the workers of other libraries in mid-run, and start them again."""
    with peers(bench) as runners:
        counts = interrupted(bench, runners)
    bench.report.figures["kill others"] = counts
    rows = [(name, *(f"{n:,}" for n in each.values())) for name, each in counts.items()]
    columns = ("", "published", "delivered", "sent twice", "not delivered")
    title = f"kill -9 of other workers, {PATIENCE_S} s after their restart"
    bench.report.tables.append(Table(title, columns, rows))
    saved = bench.report.saved.setdefault("kill", {})
    saved.update({name: _kill_cells(each) for name, each in counts.items()})


def _kill_cells(counts: dict[str, int]) -> dict[str, float | str]:
    names = {"published": "published", "twice": "sent twice", "lost": "not delivered"}
    return {column: counts[name] for name, column in names.items()}


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


def ingest(bench: Bench) -> None:
    """Time POST /v1/ingest of a real instance, by what listens to the tenant."""
    times = bench.options.either(20, 300)
    with ExitStack() as stack:
        origin = stack.enter_context(_instance(bench))
        sessions = {
            name: stack.enter_context(_tenant(bench, origin, name, path))
            for name, path in LISTENERS.items()
        }
        took: dict[str, list[float]] = {name: [] for name in sessions}
        for number in range(times + 5):
            for name, session in sessions.items():
                took[name].append(_ingest(session, origin, f"{name} {number}"))
    took = {name: seconds[5:] for name, seconds in took.items()}
    none = took["no subscriber"]
    rows = [
        (
            name,
            ms(median(part)),
            ms(percentile(part, 95)),
            f"{median(part) / median(none):.2f}",
        )
        for name, part in took.items()
    ]
    columns = ("the tenant has", "p50", "p95", "of without")
    bench.report.tables.append(Table("POST /v1/ingest", columns, rows))
    bench.report.figures["ingest"] = took
    ratio = median(took["a hanging one"]) / median(took["a healthy one"])
    what = "ingest beside a hanging subscriber, of beside a healthy one"
    bench.report.at_most(what, ratio, 1.1, "times")


@contextmanager
def _instance(bench: Bench) -> Iterator[str]:
    """Run `manage.py up` on its own database; yield its origin."""
    port = free_port()
    database = bench.scratch_sqlite("instance")
    variables = environment(database=database, name=f"{bench.name}-up")
    command = ("manage.py", "up", "--no-demo", "--port", str(port))
    worker = Worker(command, variables, bench.folder / "up.log")
    origin = f"http://127.0.0.1:{port}"
    try:
        until(lambda: _is_up(worker, origin), "manage.py up", every_s=0.2)
        yield origin
    finally:
        worker.kill()


def _is_up(worker: Worker, origin: str) -> bool:
    worker.check()
    try:
        return requests.get(f"{origin}/readyz", timeout=5).ok
    except requests.RequestException:
        return False


@contextmanager
def _tenant(
    bench: Bench, origin: str, name: str, path: str
) -> Iterator[requests.Session]:
    """Return a session of a new tenant, with a subscription when there is a path."""
    with requests.Session() as session:
        session.trust_env = False
        tenant = name.replace(" ", "-")
        session.headers.update({"X-Tenant-Id": tenant, "X-Principal-Id": "bench"})
        if path:
            sent = {"url": bench.receiver.url(path), "event_types": []}
            address = f"{origin}/v1/webhooks/subscriptions"
            session.post(address, json=sent, timeout=60).raise_for_status()
        yield session


def _ingest(session: requests.Session, origin: str, text: str) -> float:
    started = time.perf_counter()
    answer = session.post(f"{origin}/v1/ingest", json={"text": text}, timeout=60)
    took = time.perf_counter() - started
    answer.raise_for_status()
    return took
