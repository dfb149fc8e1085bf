"""The CPU of the database servers that a run uses, where they are processes of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psycopg
from redis import Redis

from benchmarks.deliveries.process_tree import cpu_of, descendants


@dataclass(frozen=True, slots=True)
class Servers:
    """The main process of each; 0 for one that is none, or that runs elsewhere."""

    postgres: int = 0
    redis: int = 0

    @classmethod
    def of(cls, postgres_url: str, redis_url: str) -> Servers:
        return cls(
            _postgres(postgres_url) if postgres_url else 0,
            _redis(redis_url) if redis_url else 0,
        )

    def cpu(self) -> float:
        """Return the seconds of CPU that the servers have used, for whichever client."""
        pids = [
            pid
            for main in (self.postgres, self.redis)
            if main
            for pid in descendants(main)
        ]
        return sum(map(cpu_of, pids))


def _postgres(url: str) -> int:
    with psycopg.connect(url) as connection:
        backend = connection.info.backend_pid
        fields = _stat(backend, "postgres")
    return int(fields[1]) if fields else 0


def _redis(url: str) -> int:
    with Redis.from_url(url) as connection:
        pid = int(connection.info("server")["process_id"])
    return pid if _stat(pid, "redis-server") else 0


def _stat(pid: int, name: str) -> list[str]:
    """Return what the kernel tells of a process after its name; empty if it is another one."""
    try:
        head, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    except OSError:
        return []
    return rest.split() if head.endswith(f"({name}") else []
