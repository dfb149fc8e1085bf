"""The deliveries benchmark's own processes, databases and broker keys."""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import requests
from cryptography.fernet import Fernet
from psycopg import sql
from redis import Redis

from benchmarks.machine import BenchError, Program

INHERITED = ("PATH", "HOME", "LANG", "COVERAGE_PROCESS_CONFIG")


def module(name: str) -> tuple[str, ...]:
    return sys.executable, "-m", f"{__package__}.{name}"


class JobProcess:
    """A process that does jobs in one environment (benchmarks.deliveries.jobs)."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self._program = Program(module("jobs"), environment, log, is_asked=True)

    def begin(self, job: str, **given: Any) -> None:
        """Give a job; end() waits for what it gives."""
        if stream := self._program.process.stdin:
            stream.write(json.dumps({"job": job, "given": given}) + "\n")
            stream.flush()

    def end(self) -> Any:
        """Return what the job gave. Raises BenchError when it failed."""
        stream = self._program.process.stdout
        if not (line := stream.readline() if stream else ""):
            raise self._program.died()
        answer = json.loads(line)
        if "error" in answer:
            raise BenchError(answer["error"])
        return answer["result"]

    def do(self, job: str, **given: Any) -> Any:
        self.begin(job, **given)
        return self.end()

    def kill(self) -> None:
        self._program.kill()


class Receiver:
    """The receiver's process, and its counts."""

    def __init__(self, log: Path) -> None:
        self._program = Program(module("receiver"), os.environ, log, is_asked=True)
        stream = self._program.process.stdout
        if not (port := stream.readline() if stream else ""):
            raise self._program.died()
        self.origin = f"http://127.0.0.1:{int(port)}"
        self._session = requests.Session()
        self._session.trust_env = False

    def url(self, path: str = "ok") -> str:
        return f"{self.origin}/{path}"

    def stats(self, path: str = "stats") -> dict[str, Any]:
        body: dict[str, Any] = self._session.get(self.url(path), timeout=60).json()
        return body

    def answered(self, kind: str = "ok") -> int:
        return int(self.stats("counts")["answered"].get(kind, 0))

    def close(self) -> None:
        self._session.close()
        self._program.kill()


class ScratchEnvironment:
    """A scratch database, the environment of the processes that use it, and job processes in it."""

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

    def kill_job_process(self, number: int) -> None:
        """End a job process, whatever it does; the next one of this number is a new process."""
        self._job_processes.pop(number).kill()

    def fill(
        self,
        *groups: tuple[str, int, int],
        size: int = 1024,
        empty: bool = True,
        owner: str = "bench",
    ) -> None:
        """Make (url, endpoints, deliveries) wait in an emptied database."""
        if empty:
            self.job_process().do("clear")
        names = ("url", "endpoints", "deliveries")
        given = [dict(zip(names, group, strict=True)) for group in groups]
        self.job_process().do("fill", groups=given, size=size, owner=owner)

    def dispatch(self, dispatchers: int = 1) -> list[dict[str, float]]:
        """Have dispatchers start together and send what waits; return what each measured."""
        job_processes = [self.job_process(1 + number) for number in range(dispatchers)]
        at = time.monotonic() + 0.1
        for job_process in job_processes:
            job_process.begin("dispatch_all", at=at)
        return [job_process.end() for job_process in job_processes]

    def close(self) -> None:
        for number in list(self._job_processes):
            self.kill_job_process(number)


def environment(*, database: str, name: str, **more: str) -> dict[str, str]:
    """Return the environment of scratch processes: they have no setting of an operator."""
    inherited = {key: os.environ[key] for key in INHERITED if key in os.environ}
    return {
        **inherited,
        "DJANGO_SETTINGS_MODULE": "benchmarks.deliveries.scratch",
        "ENVIRONMENT": "local",
        "DATABASE_URL": database,
        "REDIS_URL": "",
        "BENCH_NAME": name,
        "LOG_LEVEL": "ERROR",
        "SECRET_KEY": name * 4,
        "WEBHOOK_SECRET_KEYS": Fernet.generate_key().decode(),
        **more,
    }


def postgres() -> str:
    """Return DATABASE_URL if it names a PostgreSQL, else an empty text."""
    url = os.environ.get("DATABASE_URL", "")
    return url if url.startswith(("postgres://", "postgresql://")) else ""


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
