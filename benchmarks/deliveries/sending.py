"""What is posted when nothing but posting is measured: the engine's own bytes, signed before."""

from __future__ import annotations

import resource
import time
from typing import NamedTuple

from benchmarks.deliveries.filling import EVENT_TYPE, PROFILE, SECRET, body, padding
from webhooks_core import profiles
from webhooks_core.conf import webhook_settings
from webhooks_core.profiles import SigningContext

# What the engine's client sends beside the product's own headers.
COMMON = {
    "User-Agent": webhook_settings.USER_AGENT,
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
}


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


def cpu() -> float:
    """Return the seconds of CPU that this process has used, user and system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Watch:
    """Measures from a moment on the monotonic clock that all processes share."""

    def __init__(self, at: float) -> None:
        time.sleep(max(0.0, at - time.monotonic()))
        self._at, self._cpu = time.monotonic(), cpu()

    def read(self, count: int) -> dict[str, float]:
        """Return `count`, the seconds since then, and the CPU that they cost."""
        return {
            "count": count,
            "seconds": time.monotonic() - self._at,
            "cpu": cpu() - self._cpu,
        }
