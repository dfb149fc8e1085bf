"""pgqueuer on PostgreSQL, with asyncpg and aiohttp: `… pgqueuer_app (queue URL COUNT | work)`."""

from __future__ import annotations

import os
import sys
from datetime import timedelta

import asyncpg
import uvloop
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.models import Job

from benchmarks.deliveries.peers import events
from benchmarks.deliveries.peers.signing import headers_of, session


async def work() -> None:
    pool = await asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=4)
    app = PgQueuer(AsyncpgPoolDriver(pool))
    async with session() as client:

        @app.entrypoint("deliver")  # type: ignore[untyped-decorator,unused-ignore]
        async def deliver(job: Job) -> None:
            url, event_id, body = events.unpacked(job.payload or b"")
            async with client.post(
                url, data=body, headers=headers_of(event_id, body)
            ) as answer:
                answer.raise_for_status()

        await app.run(batch_size=500, dequeue_timeout=timedelta(seconds=1))


async def queue(url: str, count: int) -> None:
    connection = await asyncpg.create_pool(os.environ["DATABASE_URL"])
    queries = Queries(AsyncpgPoolDriver(connection))
    if not await queries.has_table("pgqueuer"):
        await queries.install()
    for jobs in events.batches(url, count):
        await queries.enqueue(["deliver"] * len(jobs), list(jobs), [0] * len(jobs))


if __name__ == "__main__":
    action, *given = sys.argv[1:]
    uvloop.run(queue(given[0], int(given[1])) if action == "queue" else work())
