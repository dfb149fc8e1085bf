"""Jobs that post: a dispatcher, measured from inside, and loops that post and do nothing else.

The loops are the limit. They have no database and no queue, and sign before they begin.
"""

from __future__ import annotations

import asyncio
import resource
import time
from datetime import timedelta
from typing import NamedTuple

import aiohttp
import uvloop

from benchmarks.deliveries.filling import EVENT_TYPE, PROFILE, SECRET, body, padding
from webhooks_core import profiles
from webhooks_core.conf import webhook_settings
from webhooks_core.dispatch.dispatcher import dispatch
from webhooks_core.network.pool import KEEP_ALIVE_S
from webhooks_core.profiles import SigningContext

# What the engine's client sends beside the product's own headers.
COMMON = {
    "User-Agent": webhook_settings.USER_AGENT,
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
}


class Watch:
    """Measures from a moment on the monotonic clock that all processes share."""

    def __init__(self, at: float) -> None:
        time.sleep(max(0.0, at - time.monotonic()))
        self._at, self._cpu = time.monotonic(), _cpu()

    def read(self, count: int) -> dict[str, float]:
        """Return `count`, the seconds since then, and the CPU that they cost this process."""
        seconds, cpu = time.monotonic() - self._at, _cpu() - self._cpu
        return {"count": count, "seconds": seconds, "cpu": cpu}


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def dispatch_all(at: float) -> dict[str, float]:
    """Do from a moment on what `manage.py webhooks_dispatch` does, until nothing waits."""
    watch = Watch(at)
    return watch.read(dispatch(linger=timedelta(0)))


class Signed(NamedTuple):
    """An event, and the headers of its product."""

    id: str
    headers: dict[str, str]
    body: bytes


def signed(count: int, size: int) -> list[Signed]:
    """Return events as a dispatcher would send them now."""
    pad = padding(size)
    return [_signed(*body(size, pad)) for _ in range(count)]


def _signed(public_id: str, text: bytes) -> Signed:
    sending = SigningContext(
        event_id=public_id,
        event_type=EVENT_TYPE,
        delivery_id=public_id,
        timestamp=int(time.time()),
        body=text,
        secrets=[SECRET],
    )
    return Signed(public_id, profiles.get(PROFILE).delivery_headers(sending), text)


def bare_aiohttp(
    url: str, count: int, size: int, in_flight: int, at: float
) -> dict[str, float]:
    """Post with aiohttp, set up to send what the engine's own client sends."""
    waiting = signed(count, size)

    async def run() -> dict[str, float]:
        async with _client() as session:
            watch = Watch(at)
            posting = (_post(session, url, waiting) for _ in range(in_flight))
            await asyncio.gather(*posting)
            return watch.read(count)

    return uvloop.run(run())


def post_now_and_then(url: str, times: int, pause_s: float) -> dict[str, float]:
    """Post one event after another; return when each was begun, by its id."""
    begun, events = {}, signed(times, 1024)

    async def run() -> None:
        async with _client() as session:
            for event in events:
                await asyncio.sleep(pause_s)
                begun[event.id] = time.monotonic()
                await _post(session, url, [event])

    uvloop.run(run())
    return begun


def _client() -> aiohttp.ClientSession:
    """Return a client that keeps connections as the engine's does, without its guard."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None),
        headers=COMMON,
    )


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
