"""Send each route its worst requests at n, 2n and 4n, and see what they cost others.

A row has the processor time and the memory that the web process took, and the longest time that
`/healthz` and a chat request took beside it. Fails if the time grows faster than n^1.2, or if
others waited for more than a second.
"""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
import threading
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Self

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from benchmarks.catalog.servers import (
    BENCHMARKS,
    MANAGE,
    Server,
    environment,
    prepare,
    wait_for,
)
from benchmarks.deliveries.environments import free_port
from benchmarks.hostile.holding import HOLDERS
from benchmarks.hostile.requests import REQUESTS, Hostile
from recording.accounts import personal_tokens
from recording.library import importing
from webhooks_core.management.argument_types import integer_between

STEPS = (1, 2, 4)
MAX_EXPONENT = 1.2
MAX_STALL_S = 1.0
# Less processor time than this shows no growth.
SHORTEST_S = 0.2
PATIENCE_S = 120.0
PAUSE_S = 0.02
HOLD_S = 5.0
OTHER_TENANT = {"X-Tenant-Id": "other", "X-Principal-Id": "other"}
CHAT = {"model": "echo", "messages": [{"role": "user", "content": "Ahoy"}]}
# One for each hostile phrase, of a megabyte.
TRANSCRIPTS = ("a " * 500_000, "海港灯塔" * 80_000)


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--only", default="", help="rows whose name holds this")
        parser.add_argument(
            "--rounds", type=integer_between(1, 99), default=3, help="the best counts"
        )
        parser.add_argument("--database-url", help="an empty database to use up")
        parser.add_argument("--fill", action="store_true", help="the default database")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["fill"]:
            self.stdout.write(fill())
            return
        with tempfile.TemporaryDirectory() as folder:
            database = options["database_url"] or f"sqlite:///{folder}/bench.sqlite3"
            prepare(database)
            variables = environment(database) | {"CATALOG_WRITES": "open"}
            token = token_of_an_account(variables)
            with web(variables, Path(folder) / "web.log") as server:
                faults = self.measure(server, token, options)
        if faults:
            raise CommandError("; ".join(faults))

    def measure(self, server: Server, token: str, options: dict[str, Any]) -> list[str]:
        """Print a row for each request and each way to hold a connection; return the faults."""
        self.stdout.write(
            "| request | status | ms of CPU at n, 2n, 4n | exponent | MiB | healthz, chat: ms |\n"
            "|---|---|---|---:|---:|---:|"
        )
        with Bystanders(server.port):  # warms up
            time.sleep(HOLD_S)
        faults = []
        for hostile in REQUESTS:
            if options["only"] in hostile.name:
                row = Row.of(server, hostile, token, options["rounds"])
                self.stdout.write(str(row))
                faults += row.faults()
        for name, hold in HOLDERS.items():
            if options["only"] in name:
                before = memory(server)
                with Bystanders(server.port) as others, hold(server.port):
                    time.sleep(HOLD_S)
                grown = peak(server) - before
                self.stdout.write(f"| {name} | | | | {grown:.0f} | {others} |")
                faults += others.faults(name)
        return faults


class Row:
    """What one request cost at three sizes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.statuses: list[int] = []
        self.cpu: list[float] = []
        self.others = Bystanders(0)
        self.memory = 0.0

    @classmethod
    def of(cls, server: Server, hostile: Hostile, token: str, rounds: int) -> Row:
        row = cls(hostile.name)
        before = memory(server)
        for step in STEPS:
            size = hostile.size * step
            best = min(
                (
                    cls._once(server, prepared(hostile, size, token))
                    for _ in range(rounds)
                ),
                key=lambda result: result[0],
            )
            row.cpu.append(best[0])
            row.statuses.append(best[1])
            if step == STEPS[-1]:
                row.others = best[2]
        row.memory = peak(server) - before
        return row

    @staticmethod
    def _once(server: Server, request: Any) -> tuple[float, int, Bystanders]:
        before = server.cpu()
        with Bystanders(server.port) as others:
            status = send(server.port, *request)
        return max(server.cpu() - before - others.cpu, 0.0), status, others

    @property
    def exponent(self) -> float:
        """Return how the time grows with the size, 1 for in proportion.

        Up to the largest size that took time: a request of 4n may be refused at once.
        """
        took = [
            pair for pair in zip(STEPS, self.cpu, strict=True) if pair[1] >= SHORTEST_S
        ]
        if not took or took[-1][0] == STEPS[0]:
            return 0.0
        step, seconds = took[-1]
        return math.log(seconds / max(self.cpu[0], 0.01), step)

    def faults(self) -> list[str]:
        found = self.others.faults(self.name)
        if self.exponent > MAX_EXPONENT:
            found.append(f"{self.name}: grows as n^{self.exponent:.1f}")
        if any(status in {0, 500} for status in self.statuses):
            found.append(f"{self.name}: answered {self.statuses}")
        return found

    def __str__(self) -> str:
        statuses = " ".join(map(str, dict.fromkeys(self.statuses)))
        cpu = ", ".join(f"{seconds * 1000:.0f}" for seconds in self.cpu)
        return (
            f"| {self.name} | {statuses} | {cpu} | {self.exponent:.1f} "
            f"| {self.memory:.0f} | {self.others} |"
        )


class Bystanders:
    """Callers of `/healthz` and of chat, as a context manager; keeps the longest time of each."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._call, args=("healthz", "GET", "/healthz", b"")
            ),
            threading.Thread(
                target=self._call,
                args=(
                    "chat",
                    "POST",
                    "/v2/chat/completions",
                    json.dumps(CHAT).encode(),
                ),
            ),
        ]
        self._calls = 0
        self.longest: dict[str, float] = {"healthz": 0.0, "chat": 0.0}

    @property
    def cpu(self) -> float:
        """Return about what these calls cost the server."""
        return self._calls * 0.001

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _call(self, name: str, method: str, path: str, body: bytes) -> None:
        headers = OTHER_TENANT | {"Content-Type": "application/json"}
        with closing(
            HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_S)
        ) as one:
            while not self._is_over.is_set():
                start = time.monotonic()
                one.request(method, path, body or None, headers)
                response = one.getresponse()
                response.read()
                took = (
                    time.monotonic() - start if response.status == 200 else PATIENCE_S
                )
                self.longest[name] = max(self.longest[name], took)
                self._calls += 1
                time.sleep(PAUSE_S)

    def faults(self, beside: str) -> list[str]:
        return [
            f"{name} took {seconds:.1f} s beside {beside}"
            for name, seconds in self.longest.items()
            if seconds > MAX_STALL_S
        ]

    def __str__(self) -> str:
        return ", ".join(f"{seconds * 1000:.0f}" for seconds in self.longest.values())


def prepared(
    hostile: Hostile, size: int, token: str
) -> tuple[str, str, bytes, dict[str, str]]:
    """Return method, path, body and headers of a request."""
    headers = {"Content-Type": hostile.content_type, **hostile.headers}
    if cookie := headers.get("Cookie"):
        unit = cookie.strip("{}")
        headers["Cookie"] = unit * (size // len(unit))
    if hostile.needs_token:
        headers["Authorization"] = f"Bearer {token}"
        headers["Accept"] = "application/json, text/event-stream"
    return hostile.method, hostile.path(size), hostile.body(size), headers


def send(
    port: int, method: str, path: str, body: bytes, headers: dict[str, str]
) -> int:
    """Send a request; return its status, 0 for a broken connection."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)) as connection:
        try:
            connection.request(method, path, body or None, headers)
            response = connection.getresponse()
            response.read()
        except (OSError, HTTPException):
            return 0
        return response.status


def memory(server: Server) -> float:
    """Return the MiB that a process has; its peak counts from here on."""
    Path(f"/proc/{server.pid}/clear_refs").write_text("5")
    return _status(server, "VmRSS")


def peak(server: Server) -> float:
    return _status(server, "VmHWM")


def _status(server: Server, field: str) -> float:
    lines = Path(f"/proc/{server.pid}/status").read_text().splitlines()
    [line] = [line for line in lines if line.startswith(field)]
    return int(line.split()[1]) / 1024


def token_of_an_account(variables: dict[str, str]) -> str:
    """Fill the database of these variables in a process of its own; return a token."""
    filling = (*BENCHMARKS, "hostile", "--fill")
    return subprocess.check_output(filling, env=variables, text=True).strip()  # noqa: S603


def fill() -> str:
    """Store recordings with long transcripts of a new account; return its token."""
    user = User.objects.create_user("bench")
    for number, text in enumerate(TRANSCRIPTS):
        transcript = {"text": text, "segments": []}
        document = {
            "audio_id": f"aud_{number}",
            "title": "Long",
            "transcript": transcript,
        }
        raw = json.dumps(document).encode()
        importing.import_recording(account=user, raw=raw, publish_event=False)
    return personal_tokens.create(user=user, days=1).text


@contextmanager
def web(variables: dict[str, str], log: Path) -> Iterator[Server]:
    """Run a web process; yield where it listens."""
    port = free_port()
    with log.open("wb") as file:
        command = (*MANAGE, "web", f"--port={port}")
        process = subprocess.Popen(command, env=variables, stdout=file, stderr=file)  # noqa: S603
    try:
        wait_for(port, process)
        yield Server(port, process.pid)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
