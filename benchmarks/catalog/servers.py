"""Contenders as servers: each in its own process, with the settings of the whole site."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import uvicorn
from django.conf import settings
from django.core.management.base import CommandError
from django.test.utils import override_settings
from django.urls import path
from django.utils.module_loading import import_string

from benchmarks import node
from benchmarks.catalog.load import Client

START_S = 180  # all of them start on a machine that may be busy


@dataclass(frozen=True, slots=True)
class Server:
    """A process and where it listens."""

    port: int
    pid: int

    def cpu(self) -> float:
        """Return the seconds of CPU that the process has used; 0 where /proc is missing."""
        status = Path(f"/proc/{self.pid}/stat")
        if not status.exists():
            return 0.0
        fields = status.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def serve(module: str, port: int) -> None:
    """Serve one contender as the whole site is served, until the process is ended."""
    view = import_module(f"benchmarks.catalog.contenders.{module}").view
    routes = (path("graphql", view),)
    with override_settings(ROOT_URLCONF=routes):
        application = import_string(settings.ASGI_APPLICATION)
        uvicorn.run(
            application, host="127.0.0.1", port=port, log_config=None, access_log=False
        )


def environment(database: str) -> dict[str, str]:
    return os.environ | {"DATABASE_URL": database, "LOG_LEVEL": "WARNING"}


MANAGE = (sys.executable, str(settings.BASE_DIR / "manage.py"))
BENCHMARKS = (sys.executable, "-m", "benchmarks")


def run(*command: str, database: str) -> None:
    """Run a command on another database, or raise CommandError."""
    done = subprocess.run(  # noqa: S603
        command, env=environment(database), cwd=settings.BASE_DIR, check=False
    )
    if done.returncode:
        raise CommandError("A command failed on the database of the comparison.")


def prepare(database: str) -> None:
    """Migrate the database of a comparison. Raises CommandError with the reason."""
    done = subprocess.run(  # noqa: S603
        (*MANAGE, "migrate", "-v0"),
        env=environment(database),
        check=False,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason was told"])[-1]
        raise CommandError(
            f"--database-url: {reason.strip().removeprefix('signpost: ')}"
        )


@contextmanager
def server(module: str, database: str) -> Iterator[Server]:
    """Run a contender; yield where it listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    if module.endswith(".mjs"):
        command = (*node.command(module), str(port))
    else:
        command = (*BENCHMARKS, "catalog", f"--serve={module}", f"--port={port}")
    with subprocess.Popen(  # noqa: S603
        command,
        env=environment(database) | {"NODE_ENV": "production"},
        cwd=settings.BASE_DIR,
    ) as process:
        try:
            wait_for(port, process)
            yield Server(port, process.pid)
        finally:
            process.terminate()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return when the port answers; raise CommandError when the process ends or takes too long."""
    until = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < until:
        try:
            return Client.of(port).close()
        except OSError:
            time.sleep(0.1)
    raise CommandError("A server did not start.")
