"""The deliveries benchmark's own processes, databases and broker keys."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import requests
from cryptography.fernet import Fernet
from django.conf import settings
from psycopg import sql
from redis import Redis

INHERITED = ("PATH", "HOME", "LANG", "COVERAGE_PROCESS_CONFIG")
PATIENCE_S = 120.0


class BenchError(Exception):
    """The benchmark cannot go on; the message says why."""


def unusable(option: str, error: Exception) -> BenchError:
    """Return what ends a run whose server cannot be used; a part without one is skipped."""
    reason = str(error).partition("\n")[0]
    return BenchError(f"{option} is not usable: {reason} (an empty one goes without)")


def until(holds: Callable[[], object], claim: str, *, every_s: float = 0.02) -> None:
    """Wait until a condition is true. Raises BenchError with its name when it never is."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            raise BenchError(f"waited in vain for: {claim}")
        time.sleep(every_s)


def _start(module: str, log: Path, **options: Any) -> subprocess.Popen[str]:
    """Start a module of this package, which exits with this process and logs to a file."""
    with log.open("ab") as out:
        return subprocess.Popen(  # noqa: S603 - a program of ours
            [sys.executable, "-m", f"{__package__}.{module}", str(os.getpid())],
            cwd=settings.BASE_DIR,
            stdout=subprocess.PIPE,
            stderr=out,
            text=True,
            **options,
        )


class JobProcess:
    """A process that does jobs in one environment (benchmarks.deliveries.job_process)."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        self._process = _start(
            "job_process", log, env=dict(environment), stdin=subprocess.PIPE
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def begin(self, job: str, **given: Any) -> None:
        """Give a job; end() waits for what it gives."""
        stream = self._process.stdin
        if stream is None:
            raise BenchError("the job process has no standard input")
        stream.write(json.dumps({"job": job, "given": given}) + "\n")
        stream.flush()

    def end(self) -> Any:
        """Return what the job gave. Raises BenchError when it failed."""
        stream = self._process.stdout
        line = stream.readline() if stream else ""
        if not line:
            tail = self._log.read_text(errors="replace")[-2000:]
            raise BenchError(f"a process of the benchmark died:\n{tail}")
        answer = json.loads(line)
        if "error" in answer:
            raise BenchError(answer["error"])
        return answer["result"]

    def do(self, job: str, **given: Any) -> Any:
        self.begin(job, **given)
        return self.end()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


class Receiver:
    """The receiver's process, and its counts."""

    def __init__(self, log: Path) -> None:
        self._process = _start("receiver", log)
        port = self._process.stdout.readline() if self._process.stdout else ""
        if not port:
            raise BenchError("the receiver did not start")
        self.origin = f"http://127.0.0.1:{int(port)}"
        self._session = requests.Session()
        self._session.trust_env = False

    def url(self, path: str = "ok") -> str:
        return f"{self.origin}/{path}"

    def stats(self, path: str = "stats") -> dict[str, Any]:
        answer = self._session.get(self.url(path), timeout=60)
        body: dict[str, Any] = answer.json()
        return body

    def reset(self) -> None:
        self.stats("reset")

    def answered(self, kind: str = "ok") -> int:
        return int(self.stats("counts")["answered"].get(kind, 0))

    def wait_for(self, count: int, kind: str = "ok") -> float:
        """Wait until so many requests were answered; return when the last one was."""
        until(lambda: self.answered(kind) >= count, f"{count} deliveries", every_s=0.05)
        return float(self.stats("counts")["last"][kind])

    def close(self) -> None:
        self._session.close()
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()


class ScratchEnvironment:
    """A scratch database, the environment of the processes that use it, and job_processes in it."""

    def __init__(self, name: str, environment: Mapping[str, str], folder: Path) -> None:
        self.name = name
        self.environment = dict(environment)
        self._folder = folder
        self._job_processes: dict[int, JobProcess] = {}
        self.job_process().do("prepare")

    def job_process(self, number: int = 0) -> JobProcess:
        """Return a job process; the first call starts it."""
        if number not in self._job_processes:
            log = self._folder / f"{self.name}-{number}.log"
            self._job_processes[number] = JobProcess(self.environment, log)
        return self._job_processes[number]

    def kill_hand(self, number: int) -> None:
        """End a job process, whatever it does; the next one of this number is a new process."""
        if job_process := self._job_processes.pop(number, None):
            job_process.kill()

    def fill(
        self,
        *groups: tuple[str, int, int],
        size: int = 1024,
        empty: bool = True,
        owner: str = "bench",
    ) -> list[int]:
        """Make (url, endpoints, deliveries) wait in an emptied database; return the keys."""
        if empty:
            self.job_process().do("clear")
        names = ("url", "endpoints", "deliveries")
        given = [dict(zip(names, group, strict=True)) for group in groups]
        keys: list[int] = self.job_process().do(
            "fill", groups=given, size=size, owner=owner
        )
        return keys

    def dispatch(self, dispatchers: int = 1, **given: Any) -> list[dict[str, float]]:
        """Have dispatchers start together and send what waits; return what each measured."""
        job_processes = [self.job_process(1 + number) for number in range(dispatchers)]
        at = time.monotonic() + 0.1
        for job_process in job_processes:
            job_process.begin("dispatch_all", at=at, **given)
        return [job_process.end() for job_process in job_processes]

    def close(self) -> None:
        for number in list(self._job_processes):
            self.kill_hand(number)


def environment(
    *, database: str, name: str, redis: str = "", **more: str
) -> dict[str, str]:
    """Return the environment of scratch processes: they have no setting of an operator."""
    inherited = {key: os.environ[key] for key in INHERITED if key in os.environ}
    return {
        **inherited,
        "DJANGO_SETTINGS_MODULE": "benchmarks.deliveries.scratch",
        "ENVIRONMENT": "local",
        "DATABASE_URL": database,
        "REDIS_URL": redis,
        "BENCH_NAME": name,
        "LOG_LEVEL": "ERROR",
        "SECRET_KEY": name * 4,
        "WEBHOOK_SECRET_KEYS": Fernet.generate_key().decode(),
        **more,
    }


def scratch_name() -> str:
    return f"signpost_bench_{secrets.token_hex(6)}"


@contextmanager
def scratch_postgres(url: str, name: str) -> Iterator[str]:
    """Create a database beside the one that a URL names, and drop it at the end; give its URL."""
    server = url.replace("postgresql://", "postgres://", 1)
    with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)),
        )
        try:
            yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        finally:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )


@contextmanager
def scratch_keys(url: str, name: str) -> Iterator[str]:
    """Give a Redis whose keys of this name are deleted at the end."""
    with Redis.from_url(url, socket_connect_timeout=5) as connection:
        connection.ping()
        try:
            yield url
        finally:
            for key in connection.scan_iter(match=f"*{name}*", count=1000):
                connection.delete(key)


def slug_of(name: str) -> str:
    return "".join(each if each.isalnum() else "-" for each in name.lower())


def free_port() -> int:
    """Return a port of this machine on which no process listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
