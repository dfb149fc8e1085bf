"""A PostgreSQL, a Redis and a disk of the test's own, which it may stop, kill and fill."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import redis

from tests.running import PATIENCE_S, free_port, until


class Redis:
    """A redis-server that keeps nothing on disk."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def client(self) -> redis.Redis:
        return redis.from_url(self.url, socket_timeout=PATIENCE_S)

    def start(self) -> None:
        options = ("--port", str(self.port), "--bind", "127.0.0.1", "--save", "")
        self._process = subprocess.Popen(
            ["redis-server", *options],
            cwd=tempfile.gettempdir(),
            stdout=subprocess.DEVNULL,
        )
        until(self._answers, "Redis to answer")

    def _answers(self) -> bool:
        with self.client as client, suppress(redis.RedisError):
            return bool(client.ping())
        return False

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()

    @contextmanager
    def running(self) -> Iterator["Redis"]:
        try:
            self.start()
            yield self
        finally:
            self.kill()


class Postgres:
    """A PostgreSQL cluster in a folder of its own; run as `postgres` where we are root."""

    def __init__(self, *, copy_of: Path | None = None) -> None:
        self._copy_of = copy_of
        self.port = free_port()
        self.url = f"postgres://postgres@127.0.0.1:{self.port}/postgres"
        # Not below pytest's folder, into which no other user may look.
        self._folder = Path(tempfile.mkdtemp(prefix="signpost-faults-"))
        self._data = self._folder / "data"

    @staticmethod
    def programs() -> Path | None:
        """Return where initdb and pg_ctl are; None when PostgreSQL is not installed."""
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        installed = str(found[-1]) if found else shutil.which("initdb")
        return Path(installed).parent if installed else None

    def _run(self, program: str, *arguments: str) -> None:
        programs = self.programs()
        assert programs
        own = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        subprocess.run(
            [*own, programs / program, "-D", self._data, *arguments],
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            check=True,
        )

    def start(self) -> None:
        options = f"-p {self.port} -k {self._folder} -h 127.0.0.1"
        log = str(self._folder / "log")
        self._run("pg_ctl", "-w", "-t", "60", "-l", log, "-o", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-w", "-m", "fast", "stop")

    def stop_at_once(self) -> None:
        """Stop as in a crash: no farewell to clients, no checkpoint; recovery at the start."""
        self._run("pg_ctl", "-w", "-m", "immediate", "stop")

    def copy_to(self, folder: Path) -> None:
        """Copy the files of a stopped server."""
        shutil.copytree(self._data, folder)

    def _make_files(self) -> None:
        if self._copy_of:
            shutil.copytree(self._copy_of, self._data)
        if os.getuid() == 0:
            subprocess.run(["chown", "-R", "postgres", self._folder], check=True)
        if not self._copy_of:
            self._run("initdb", "-A", "trust", "-U", "postgres", "--no-sync")

    @contextmanager
    def running(self) -> Iterator["Postgres"]:
        try:
            self._make_files()
            self.start()
            yield self
        finally:
            with suppress(subprocess.CalledProcessError):
                self.stop_at_once()
            shutil.rmtree(self._folder, ignore_errors=True)


class Disk:
    """A small disk in memory."""

    SIZE = 16 * 1024 * 1024

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    @contextmanager
    def mounted(self) -> Iterator["Disk"]:
        options = ("-t", "tmpfs", "-o", f"size={self.SIZE}", "tmpfs", self.folder)
        done = subprocess.run(
            ["mount", *options], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"no small disk, which takes root to mount: {done.stderr}")
        try:
            yield self
        finally:
            subprocess.run(["umount", "--lazy", self.folder], check=True)

    def fill(self) -> None:
        """Leave not a byte."""
        with suppress(OSError), self._filler.open("ab", buffering=0) as filler:
            while filler.write(bytes(4096)):
                pass
        assert shutil.disk_usage(self.folder).free == 0

    def free(self) -> None:
        self._filler.unlink()
