"""Measure chat beside the upstream itself and other gateways: one run, one process each."""

from __future__ import annotations

import subprocess
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import uvloop
from django.conf import settings
from django.core.management.base import BaseCommand

from benchmarks.chat import load, peers
from benchmarks.chat.load import Server, Taken
from webhooks_core.management.argument_types import integer_between, seconds

REQUEST_CLIENTS = (1, 16, 64)
STREAM_CLIENTS = (64, 300)
HELD = 1000

# What each server took of one load, by its name.
Turn = dict[str, Taken]


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
            "--rounds",
            type=integer_between(1, 99),
            default=3,
            help="each load so often, in turn; the median counts (default: %(default)s)",
        )
        parser.add_argument(
            "--held",
            type=integer_between(1, 100_000),
            default=HELD,
            help="slow streams at once",
        )
        parser.add_argument(
            "--processes",
            type=integer_between(1, 64),
            default=1,
            help="measure Signpost with so many processes, too: the column of the "
            "clients' CPU says whether they had a core to themselves",
        )

    def handle(
        self,
        *args: Any,
        seconds: float,
        only: list[str],
        held: int,
        rounds: int,
        processes: int,
        **options: Any,
    ) -> None:
        self.seconds, self.rounds = seconds, rounds
        with (
            tempfile.TemporaryDirectory(prefix="bench-chat-") as folder,
            peers.all_servers(Path(folder), only, processes) as servers,
        ):
            uvloop.run(self._measure(servers, held))

    async def _measure(self, servers: list[Server], held: int) -> None:
        self.stdout.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {_commit()}")
        for clients in REQUEST_CLIENTS:
            self._section(f"Requests, {clients} at once", REQUEST_COLUMNS)
            await self._loads(servers, clients, stream=False)
        for clients in STREAM_CLIENTS:
            self._section(f"Streams of 50 chunks, {clients} at once", STREAM_COLUMNS)
            await self._loads(servers, clients, stream=True)
        self._section(f"{held} slow streams open", HELD_COLUMNS)
        for server in servers[1:]:
            if not server.streams:
                continue
            self._row(server.name, *_held(*await load.hold(server, held), held))

    async def _loads(
        self, servers: list[Server], clients: int, *, stream: bool
    ) -> None:
        able = [server for server in servers if server.streams or not stream]
        turns = [await self._turn(able, clients, stream) for _ in range(self.rounds)]
        for server in servers:
            if server not in able:
                self._row(server.name, "answers every stream with an error here")
                continue
            shown = sorted(turns, key=lambda turn: turn[server.name].per_second)
            middle = shown[len(shown) // 2]
            show = _streams if stream else _requests
            cells = show(middle[server.name], middle["straight"])
            self._row(server.name, *cells, _multiple(turns, server.name))

    async def _turn(self, servers: list[Server], clients: int, stream: bool) -> Turn:
        """Let each server have the load once."""
        turn: Turn = {}
        for server in servers:
            before = load.cpu_of(server.pids)
            taken = await load.load(
                server, clients=clients, seconds=self.seconds, stream=stream
            )
            taken.cpu = load.cpu_of(server.pids) - before
            turn[server.name] = taken
        return turn

    def _section(self, title: str, columns: str) -> None:
        names = columns.split("|")
        self.stdout.write(f"\n### {title}\n\n| | {' | '.join(names)} |")
        self.stdout.write("|---" * (len(names) + 1) + "|")

    def _row(self, *cells: str) -> None:
        self.stdout.write(f"| {' | '.join(cells)} |")
        self.stdout.flush()


MULTIPLE = "Signpost's multiple"
REQUEST_COLUMNS = f"requests/s|p50|added p50|added p95|added p99|CPU/request|clients' CPU|failures|{MULTIPLE}"
STREAM_COLUMNS = f"streams/s|chunks/s|first chunk p50|added p50|added p95|CPU/stream|clients' CPU|failures|{MULTIPLE}"
NONE = "none answered"
HELD_COLUMNS = "completed|memory|idle p50|idle p95|p50 meanwhile|p95 meanwhile"


def _commit() -> str:
    """Return what is measured; an image has no git."""
    command = "git", "describe", "--always", "--dirty"
    try:
        description = subprocess.run(  # noqa: S603 - a command of ours
            command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "commit unknown"
    return f"commit {description.stdout.strip()}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def _percentile(
    taken: Taken, percent: int, *, above: Taken | None = None, first: bool = False
) -> str:
    """Return a percentile, above another load's; NONE when nothing was answered."""
    if not (taken.first_bytes if first else taken.latencies):
        return NONE
    value = taken.percentile(percent, first=first)
    return _ms(value - above.percentile(percent, first=first) if above else value)


def _multiple(turns: list[Turn], name: str) -> str:
    """Return Signpost's rate as a multiple of another's: within a round, the median of all."""
    multiples = [
        turn["signpost"].per_second / turn[name].per_second
        for turn in turns
        if "signpost" in turn and turn[name].per_second
    ]
    return f"{median(multiples):.2f}" if multiples else NONE


def _requests(taken: Taken, straight: Taken) -> Iterator[str]:
    yield f"{taken.per_second:,.0f}"
    yield _percentile(taken, 50)
    for percent in (50, 95, 99):
        yield _percentile(taken, percent, above=straight)
    yield _cpu(taken)
    yield f"{taken.clients_cpu / taken.seconds:.0%}"
    yield str(taken.failures)


def _streams(taken: Taken, straight: Taken) -> Iterator[str]:
    yield f"{taken.per_second:,.0f}"
    yield f"{taken.events / taken.seconds:,.0f}"
    yield _percentile(taken, 50, first=True)
    for percent in (50, 95):
        yield _percentile(taken, percent, above=straight, first=True)
    yield _cpu(taken)
    yield f"{taken.clients_cpu / taken.seconds:.0%}"
    yield str(taken.failures)


def _cpu(taken: Taken) -> str:
    # The warm-up costs CPU as well.
    share = taken.seconds / (taken.seconds + load.WARM_UP_S)
    return _ms(taken.cpu * share / len(taken.latencies)) if taken.latencies else NONE


def _held(
    idle: Taken, busy: Taken, streams: Taken, memory: int, held: int
) -> Iterator[str]:
    yield f"{len(streams.latencies)} of {held}"
    yield f"{memory / 1e6:.0f} MB"
    for taken in (idle, busy):
        for percent in (50, 95):
            yield _percentile(taken, percent)
