"""Measure chat beside the upstream itself and other gateways: one run, one process each."""

from __future__ import annotations

import subprocess
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvloop
from django.conf import settings
from django.core.management.base import BaseCommand

from gateway.chat.bench import load, peers
from gateway.chat.bench.load import Server, Taken
from webhooks_core.arguments import seconds, whole

REQUEST_CLIENTS = (1, 16, 64)
STREAM_CLIENTS = (64, 300)
HELD = 1000


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--seconds", type=seconds(0.1, 3600), default=5.0, help="for each load"
        )
        parser.add_argument(
            "--only",
            action="append",
            default=[],
            choices=["signpost", "litellm", "portkey"],
            help="leave the others out; may be given several times",
        )
        parser.add_argument(
            "--held", type=whole(1, 100_000), default=HELD, help="slow streams at once"
        )

    def handle(
        self, *args: Any, seconds: float, only: list[str], held: int, **options: Any
    ) -> None:
        with (
            tempfile.TemporaryDirectory(prefix="bench-chat-") as folder,
            peers.all_servers(Path(folder), only) as servers,
        ):
            uvloop.run(self._measure(servers, seconds, held))

    async def _measure(self, servers: list[Server], seconds: float, held: int) -> None:
        self.stdout.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {_commit()}")
        for clients in REQUEST_CLIENTS:
            self._section(f"Requests, {clients} at once", REQUEST_COLUMNS)
            await self._loads(servers, clients, seconds, stream=False)
        for clients in STREAM_CLIENTS:
            self._section(f"Streams of 50 chunks, {clients} at once", STREAM_COLUMNS)
            await self._loads(servers, clients, seconds, stream=True)
        self._section(f"{held} slow streams open", HELD_COLUMNS)
        for server in servers[1:]:
            if not server.streams:
                continue
            self._row(server.name, *_held(*await load.hold(server, held), held))

    async def _loads(
        self, servers: list[Server], clients: int, seconds: float, *, stream: bool
    ) -> None:
        straight: Taken | None = None
        for server in servers:
            if stream and not server.streams:
                self._row(server.name, "answers every stream with an error here")
                continue
            before = load.cpu_of(server.pids)
            taken = await load.load(
                server, clients=clients, seconds=seconds, stream=stream
            )
            cpu = load.cpu_of(server.pids) - before
            straight = straight or taken
            show = _streams if stream else _requests
            self._row(server.name, *show(taken, straight, cpu))

    def _section(self, title: str, columns: str) -> None:
        names = columns.split("|")
        self.stdout.write(f"\n### {title}\n\n| | {' | '.join(names)} |")
        self.stdout.write("|---" * (len(names) + 1) + "|")

    def _row(self, *cells: str) -> None:
        self.stdout.write(f"| {' | '.join(cells)} |")
        self.stdout.flush()


REQUEST_COLUMNS = "requests/s|p50|added p50|added p95|added p99|CPU/request|failures"
STREAM_COLUMNS = (
    "streams/s|chunks/s|first chunk p50|added p50|added p95|CPU/stream|failures"
)
NONE = "none answered"
HELD_COLUMNS = "completed|memory|idle p50|idle p95|p50 meanwhile|p95 meanwhile"


def _commit() -> str:
    """Return what is measured; an image has no git."""
    command = "git", "describe", "--always", "--dirty"
    try:
        told = subprocess.run(  # noqa: S603 - a command of ours
            command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "commit unknown"
    return f"commit {told.stdout.strip()}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def _percentile(
    taken: Taken, percent: int, *, above: Taken | None = None, first: bool = False
) -> str:
    """Return a percentile, above another load's; NONE when nothing was answered."""
    if not (taken.first_bytes if first else taken.latencies):
        return NONE
    found = taken.percentile(percent, first=first)
    return _ms(found - above.percentile(percent, first=first) if above else found)


def _requests(taken: Taken, straight: Taken, cpu: float) -> Iterator[str]:
    yield f"{taken.per_second:,.0f}"
    yield _percentile(taken, 50)
    for percent in (50, 95, 99):
        yield _percentile(taken, percent, above=straight)
    yield _cpu(taken, cpu)
    yield str(taken.failures)


def _streams(taken: Taken, straight: Taken, cpu: float) -> Iterator[str]:
    yield f"{taken.per_second:,.0f}"
    yield f"{taken.events / taken.seconds:,.0f}"
    yield _percentile(taken, 50, first=True)
    for percent in (50, 95):
        yield _percentile(taken, percent, above=straight, first=True)
    yield _cpu(taken, cpu)
    yield str(taken.failures)


def _cpu(taken: Taken, cpu: float) -> str:
    # The warm-up costs CPU as well.
    share = taken.seconds / (taken.seconds + load.WARM_UP_S)
    return _ms(cpu * share / len(taken.latencies)) if taken.latencies else NONE


def _held(
    idle: Taken, busy: Taken, streams: Taken, memory: int, held: int
) -> Iterator[str]:
    yield f"{len(streams.latencies)} of {held}"
    yield f"{memory / 1e6:.0f} MB"
    for taken in (idle, busy):
        for percent in (50, 95):
            yield _percentile(taken, percent)
