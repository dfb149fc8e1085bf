"""What the result of an attempt means for its delivery, and what of it is kept for people. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson

from webhooks_core.models import Endpoint
from webhooks_core.network.errors import Outcome
from webhooks_core.network.transport import AttemptResult
from webhooks_core.profiles import WebhookProfile
from webhooks_core.secrets import HIDDEN, EncryptedText

# After so many interruptions a delivery is a suspect: it is sent while no other suspect is.
SUSPECT_AFTER = 2
# A delivery that crashes its worker process must not do so without end.
MAX_LONE_INTERRUPTIONS = 5
LONGEST_PAUSE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Decision:
    """Delivered, to be retried after `pause_s`, or (neither) failed for good."""

    is_delivered: bool = False
    pause_s: float | None = None
    error: str = ""

    @property
    def is_final_failure(self) -> bool:
        return not self.is_delivered and self.pause_s is None


def decide(profile: WebhookProfile, *, tried: int, result: AttemptResult) -> Decision:
    """Return what a result means; `tried` counts the attempts with a known result."""
    if result.outcome == Outcome.OK:
        return Decision(is_delivered=True)
    if result.status_code in profile.final_statuses:
        return Decision(error=result.error)
    pause = profile.retry.delay_after(tried, retry_after=result.retry_after)
    return Decision(pause_s=pause, error=result.error)


def pause_after_interruption(interruptions: int) -> timedelta:
    """Return the pause after so many: the first attempt is repeated at once, a suspect later."""
    if interruptions < SUSPECT_AFTER:
        return timedelta(0)
    return min(timedelta(seconds=2 ** (interruptions - 1)), LONGEST_PAUSE)


EXCERPT = 200


def excerpt(body: bytes) -> str:
    """Return the start of a response's body as one line of printable characters."""
    text = body[: 4 * EXCERPT].decode(errors="replace")
    words = " ".join(text.split())
    return "".join(filter(str.isprintable, words))[:EXCERPT]


def details(result: AttemptResult, endpoint: Endpoint, *, lease: int) -> str:
    """Return JSON: `lease`, and of a request that was sent `request` and `response`.

    These are the header lines, without the values of custom headers: they may hold credentials.
    Also `address`, and in milliseconds since the start of the attempt `connected`, `secured`
    (neither on a kept connection) and `first_byte`; null where it did not get there. `url` is the
    endpoint's at that time.
    """
    if not result.request_head:
        return orjson.dumps({"lease": lease, "url": endpoint.url}).decode()
    connected, secured, first_byte = result.timings
    fields = {
        "lease": lease,
        "url": endpoint.url,
        "request": _sent(result.request_head, endpoint.custom_headers),
        "response": _received(result),
        "address": result.address,
        "connected": connected,
        "secured": secured,
        "first_byte": first_byte,
    }
    return orjson.dumps(fields).decode()


def _sent(head: bytes, custom: EncryptedText | None) -> str:
    text = head.decode().partition("\r\n")[2].removesuffix("\r\n\r\n")
    if custom is None:
        return text
    headers: dict[str, Any] = orjson.loads(custom.decrypt())
    pairs = [line.partition(": ") for line in text.split("\r\n")]
    return "\r\n".join(
        f"{name}: {HIDDEN if name in headers else value}" for name, _, value in pairs
    )


def _received(result: AttemptResult) -> str:
    lines = [b"%s: %s" % pair for pair in result.response_headers]
    # PostgreSQL stores no NUL.
    return b"\r\n".join(lines).decode("latin-1").replace("\0", "\ufffd")
