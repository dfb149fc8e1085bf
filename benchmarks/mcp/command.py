"""Time chat and webhook deliveries without and beside MCP clients, on one instance."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from benchmarks import results
from benchmarks.catalog.servers import BENCHMARKS, MANAGE, environment, prepare
from benchmarks.deliveries.bench import percentile
from benchmarks.deliveries.environments import Receiver, free_port, until
from benchmarks.mcp.clients import CALLS
from benchmarks.recordings import documents
from recording.accounts import personal_tokens
from recording.library import importing
from webhooks_core.management.argument_types import integer_between, seconds

RECORDINGS, WORDS = 50, 10_000
HEADERS = {
    "X-Tenant-Id": "bench",
    "X-Principal-Id": "bench",
    "Content-Type": "application/json",
}
CHAT = {"model": "echo", "messages": [{"role": "user", "content": "Hello harbour"}]}
SUBSCRIPTIONS = "/v1/webhooks/subscriptions"
CHAT_PER_S, EVENTS_PER_S = 40, 20
Times = dict[str, list[float]]
Row = dict[str, float | str]


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--clients", type=integer_between(1), default=200, help="%(default)s"
        )
        parser.add_argument(
            "--seconds", type=seconds(0.1, 3600), default=10.0, help="of each load"
        )
        parser.add_argument(
            "--rounds", type=integer_between(1, 99), default=3, help="%(default)s"
        )
        parser.add_argument(
            "--apart", action="store_true", help="/mcp in a web process of its own"
        )
        results.add_option(parser)
        parser.add_argument("--database-url", help="an empty database to use up")
        parser.add_argument("--fill", action="store_true", help="the default database")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["fill"]:
            self.stdout.write(fill())
            return
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            database = options["database_url"] or f"sqlite:///{name}/bench.sqlite3"
            prepare(database)
            variables = environment(database)
            filling = (*BENCHMARKS, "mcp", "--fill")
            token = subprocess.check_output(filling, env=variables, text=True)  # noqa: S603
            with (
                closing(Receiver(folder / "receiver.log")) as receiver,
                ExitStack() as stack,
            ):
                port = stack.enter_context(instance(variables, folder / "instance.log"))
                if options["apart"]:
                    log = folder / "apart.log"
                    second = instance(variables, log, "--no-worker")
                    mcp_port = stack.enter_context(second)
                else:
                    mcp_port = port
                loads = Loads(port, receiver)
                self.measure(loads, mcp_port, token.strip(), options)

    def measure(
        self, loads: Loads, mcp_port: int, token: str, options: dict[str, Any]
    ) -> None:
        """Load without and with MCP clients in turns, and print the ratios."""
        count, length = options["clients"], options["seconds"]
        alone, beside, calls = [], [], []
        with mcp_clients(mcp_port, token, len(CALLS), 1):
            loads.run(1)  # warms up; the first call imports the package `mcp`
        for _ in range(options["rounds"]):
            alone.append(loads.run(length))
            with mcp_clients(mcp_port, token, count, length + 1) as figures:
                beside.append(loads.run(length))
            calls.append(figures)
        tables = {
            "tools": dict(tool_rows(calls, length + 1)),
            "limits": dict(ratio_rows(alone, beside)),
        }
        for title, rows in tables.items():
            self.stdout.write(
                "\n".join((f"\n### {title}\n", *results.as_markdown(rows)))
            )
        if options["save"]:
            results.save("mcp", tables, versions=results.python_versions("mcp"))


def tool_rows(calls: list[dict[str, Any]], length: float) -> Iterator[tuple[str, Row]]:
    """Return what the clients of each tool measured in all rounds together."""
    for tool in CALLS:
        latencies = [each for one in calls for each in one[tool]["latencies"]]
        yield (
            tool,
            {
                "calls/s": len(latencies) / length / len(calls),
                "p50, ms": percentile(latencies, 50) * 1e3,
                "p95, ms": percentile(latencies, 95) * 1e3,
                "failures": sum(one[tool]["failures"] for one in calls),
            },
        )


def ratio_rows(alone: list[Times], beside: list[Times]) -> Iterator[tuple[str, Row]]:
    """Return the medians of the rounds; a ratio is one within a round."""
    for name in alone[0]:
        for percent in (50, 95):
            pairs = [
                (percentile(one[name], percent), percentile(two[name], percent))
                for one, two in zip(alone, beside, strict=True)
            ]
            before, after = (median(times) for times in zip(*pairs, strict=True))
            yield (
                f"{name}, p{percent}",
                {
                    "without MCP clients, ms": before * 1e3,
                    "beside them, ms": after * 1e3,
                    "ratio": median(two / one for one, two in pairs),
                },
            )


def fill() -> str:
    """Store recordings of a new account; return its token."""
    user = User.objects.create_user("bench")
    for raw in documents(RECORDINGS, WORDS):
        importing.import_recording(account=user, raw=raw, publish_event=False)
    return personal_tokens.create(user=user, days=1).text


@contextmanager
def instance(variables: dict[str, str], log: Path, *more: str) -> Iterator[int]:
    """Run `manage.py up`; return its port."""
    port = free_port()
    command = (*MANAGE, "up", "--no-demo", f"--port={port}", *more)
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=variables, stdout=file, stderr=file)  # noqa: S603
    try:
        until(lambda: b"Signpost is ready" in log.read_bytes(), "the instance")
        yield port
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def mcp_clients(
    port: int, token: str, count: int, length: float
) -> Iterator[dict[str, Any]]:
    """Run MCP clients beside; at the end, return what each tool took."""
    command = (*BENCHMARKS[:2], "benchmarks.mcp.clients", port, token, count, length)
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE)  # noqa: S603
    results: dict[str, Any] = {}
    time.sleep(1)  # they connect
    yield results
    output, _ = process.communicate()
    results.update(json.loads(output))


class Loads:
    """Chat requests and events at a steady rate."""

    def __init__(self, port: int, receiver: Receiver) -> None:
        self.port, self._receiver = port, receiver
        body = {"url": receiver.url("timed"), "event_types": []}
        with closing(HTTPConnection("127.0.0.1", port)) as connection:
            created = post(connection, SUBSCRIPTIONS, body)
        self._events = f"{SUBSCRIPTIONS}/{created['id']}/test"

    def run(self, length: float) -> Times:
        """Return the seconds of each request, and from each event to its receiver."""
        self._receiver.reset()
        with ThreadPoolExecutor(2) as pool:
            chat = pool.submit(
                self._paced, "/v2/chat/completions", CHAT, CHAT_PER_S, length
            )
            sent = pool.submit(self._paced, self._events, {}, EVENTS_PER_S, length)
        published = {answer["event_id"]: due for due, _, answer in sent.result()}
        until(
            lambda: published.keys() <= self._receiver.stats()["began"].keys(),
            "the last event",
        )
        began = self._receiver.stats()["began"]
        return {
            "chat request": [end - due for due, end, _ in chat.result()],
            "publishing request": [end - due for due, end, _ in sent.result()],
            "delivery": [began[event] - due for event, due in published.items()],
        }

    def _paced(
        self, path: str, body: object, per_s: int, length: float
    ) -> list[tuple[float, float, Any]]:
        """Send requests; return when each was due, when it was answered, and the answer."""
        start, results = time.monotonic(), []
        with closing(HTTPConnection("127.0.0.1", self.port)) as connection:
            for number in range(int(per_s * length)):
                due = start + number / per_s
                time.sleep(max(due - time.monotonic(), 0))
                answer = post(connection, path, body)
                results.append((due, time.monotonic(), answer))
        return results


def post(connection: HTTPConnection, path: str, body: object) -> Any:
    connection.request("POST", path, json.dumps(body), HEADERS)
    response = connection.getresponse()
    content = response.read()
    if response.status >= 300:
        raise CommandError(f"{path} answered {response.status}: {content[:200]!r}")
    return json.loads(content)
