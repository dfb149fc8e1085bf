"""The limit: loops that post and do nothing else. No database, no queue, signed before."""

from __future__ import annotations

import asyncio
import time

import aiohttp
import uvloop

from benchmarks.deliveries.sending import COMMON, Signed, Watch, signed
from webhooks_core.network.pool import KEEP_ALIVE_S


def bare_aiohttp(
    url: str, count: int, size: int, in_flight: int, at: float
) -> dict[str, float]:
    """Post with aiohttp, set up to send what the engine's own client sends."""
    return uvloop.run(_bare_aiohttp(url, signed(count, size), in_flight, at))


def client() -> aiohttp.ClientSession:
    """Return a client that keeps connections as the engine's does, without its guard."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None),
        headers=COMMON,
    )


async def _bare_aiohttp(
    url: str, waiting: list[Signed], in_flight: int, at: float
) -> dict[str, float]:
    count = len(waiting)
    async with client() as session:
        watch = Watch(at)
        await asyncio.gather(*(_post(session, url, waiting) for _ in range(in_flight)))
        return watch.read(count)


async def _post(
    session: aiohttp.ClientSession, url: str, waiting: list[Signed]
) -> None:
    while waiting:
        event = waiting.pop()
        async with session.post(
            url, data=event.body, headers=event.headers, allow_redirects=False
        ) as answer:
            if answer.status != 204:
                raise RuntimeError(f"the receiver answered {answer.status}")


def post_now_and_then(url: str, times: int, pause_s: float) -> dict[str, float]:
    """Post one event after another; return when each was begun, by its id."""
    return uvloop.run(_post_now_and_then(url, signed(times, 1024), pause_s))


async def _post_now_and_then(
    url: str, events: list[Signed], pause_s: float
) -> dict[str, float]:
    begun = {}
    async with client() as session:
        for event in events:
            await asyncio.sleep(pause_s)
            begun[event.id] = time.monotonic()
            await _post(session, url, [event])
    return begun
