"""Received requests as text for a terminal, with everything unprintable escaped."""

from __future__ import annotations

import json
import time

import orjson

from webhooks_core.management.printable import printable
from webhooks_core.management.verification import Received, Verification

MAX_SHOWN = 20_000
MARKS = {True: "✔", False: "✘", None: "·"}


def one_line(received: Received, verification: Verification, status: int) -> str:
    """Return a request and its verification on one line."""
    names = (received.event_type or "no type", received.event_id, received.delivery_id)
    shown = "  ".join(printable(name)[:200] for name in names if name)
    clock = time.strftime("%H:%M:%S", time.localtime(received.at))
    mark, message = MARKS[verification.is_verified], verification.message
    return f"{clock}  {mark} {shown}  ({printable(message)}) → {status}"


def body(received: Received) -> str:
    """Return the body: indented if it is JSON, cut to MAX_SHOWN characters."""
    try:
        text = orjson.dumps(received.json(), option=orjson.OPT_INDENT_2).decode()
    except (ValueError, TypeError):  # not JSON, or nested too deeply
        text = received.body.decode("utf-8", "backslashreplace")
    shown = printable(text[:MAX_SHOWN], keep="\n")
    rest = len(text) - MAX_SHOWN
    return shown if rest <= 0 else f"{shown}\n… {rest} more characters"


def as_json(received: Received, verification: Verification, status: int) -> str:
    """Return everything as one line of JSON in ASCII, with the exact body as text."""
    record = {
        "received_at": received.at,
        "path": received.path,
        "event_type": received.event_type,
        "event_id": received.event_id,
        "delivery_id": received.delivery_id,
        "verified": verification.is_verified,
        "signature": verification.message,
        "status": status,
        "body": received.body.decode("utf-8", "backslashreplace"),
    }
    return json.dumps(record)
