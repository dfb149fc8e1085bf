"""Measure chat beside the upstream itself and other gateways: one run, one process each."""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import uvloop
from django.core.management.base import BaseCommand

from benchmarks import results
from benchmarks.chat import load, peers
from benchmarks.chat.load import Server, Taken

REQUEST_CLIENTS = (16, 64)
STREAM_CLIENTS = (64, 300)
HELD = 1000
ONE_CLIENT = "p50 of one client, ms"

# What each server took of one load, by its name.
Turn = dict[str, Taken]
Rows = dict[str, dict[str, float | str]]


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        names = [start.__name__ for start in peers.ALL]
        add = parser.add_argument
        add("--seconds", type=float, default=5.0, help="for each load")
        add("--only", action="append", default=[], choices=names)
        add("--rounds", type=int, default=3, help="of each load; the median counts")
        add("--held", type=int, default=HELD, help="slow streams at once")

    def handle(self, *args: Any, only: list[str], held: int, **options: Any) -> None:
        self.seconds, self.rounds = options["seconds"], options["rounds"]
        left_out: dict[str, str] = {}
        with (
            tempfile.TemporaryDirectory(prefix="bench-chat-") as folder,
            peers.all_servers(Path(folder), only, left_out) as servers,
        ):
            uvloop.run(self._measure(servers, held))
        for name, reason in left_out.items():
            self.stdout.write(f"Not measured: {name} ({reason}).")

    async def _measure(self, servers: list[Server], held: int) -> None:
        self.stdout.write(results.about())
        rows: Rows = {server.name: {} for server in servers}
        turns = await self._turns(servers, 1, stream=False)
        _add(
            rows,
            ONE_CLIENT,
            turns,
            lambda taken: median(taken.latencies or [0.0]) * 1e3,
        )
        for clients in REQUEST_CLIENTS:
            turns = await self._turns(servers, clients, stream=False)
            _add(rows, f"requests/s, {clients} at once", turns)
            if clients == REQUEST_CLIENTS[0]:
                _add(rows, "CPU per request, ms", turns, _cpu)
        for clients in STREAM_CLIENTS:
            turns = await self._turns(servers, clients, stream=True)
            _add(rows, f"streams/s, {clients} at once", turns)
            if clients == STREAM_CLIENTS[0]:
                _add(rows, "CPU per stream, ms", turns, _cpu)
        self._print("Gateways", rows)
        streams = {
            server.name: _held(*await load.hold(server, held), held)
            for server in servers[1:]
            if server.streams
        }
        self._print(f"{held} slow streams open", streams)

    async def _turns(
        self, servers: list[Server], clients: int, *, stream: bool
    ) -> list[Turn]:
        able = [server for server in servers if server.streams or not stream]
        return [await self._turn(able, clients, stream) for _ in range(self.rounds)]

    async def _turn(self, servers: list[Server], clients: int, stream: bool) -> Turn:
        """Let each server have the load once."""
        turn: Turn = {}
        for server in servers:
            before = server.program.cpu()
            taken = await load.load(
                server, clients=clients, seconds=self.seconds, stream=stream
            )
            taken.cpu = server.program.cpu() - before
            turn[server.name] = taken
        return turn

    def _print(self, title: str, rows: Mapping[str, Mapping[str, float | str]]) -> None:
        self.stdout.write(results.titled(title, rows))


def _add(
    rows: Rows,
    column: str,
    turns: list[Turn],
    figure: Any = lambda taken: taken.per_second,
) -> None:
    """Give each row the median of a figure; failures are told beside it."""
    for name in turns[0]:
        rows[name][column] = median(figure(turn[name]) for turn in turns)
        if failures := sum(turn[name].failures for turn in turns):
            rows[name]["failures"] = failures + float(rows[name].get("failures", 0))


def _cpu(taken: Taken) -> float:
    """Return the milliseconds of CPU of a request; the warm-up costs CPU as well."""
    share = taken.seconds / (taken.seconds + load.WARM_UP_S)
    return taken.cpu * share / max(len(taken.latencies), 1) * 1e3


def _held(
    idle: Taken, busy: Taken, streams: Taken, memory: int, held: int
) -> dict[str, float | str]:
    cells: dict[str, float | str] = {
        "completed": f"{len(streams.latencies):,} of {held:,}",
        "memory, MB": round(memory / 1e6),
    }
    for name, taken in (("idle", idle), ("meanwhile", busy)):
        for percent in (50, 95):
            column = f"p{percent} {name}, ms"
            cells[column] = (
                results.percentile(taken.latencies, percent) * 1e3
                if taken.latencies
                else "none answered"
            )
    return cells
