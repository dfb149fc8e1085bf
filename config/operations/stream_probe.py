"""The stream that `manage.py doctor --reach` reads, to see whether it arrives in parts."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qs, urlencode

import orjson
from django.conf import settings
from django.core.signing import BadSignature, TimestampSigner

from config.serving.wsgi_bridge import Scope, Send

PATH = "/healthz/stream"
PAUSE_S = 0.5
VALID_S = 60

_signer = TimestampSigner(salt="config.operations.stream_probe")


def address() -> str:
    """Return a path with a signed query, valid for a minute; without a signature it is 404."""
    return f"{PATH}?{urlencode({'token': _signer.sign('stream')})}"


def serves(scope: Scope) -> bool:
    return scope["type"] == "http" and bool(scope["path"] == PATH)


async def respond(scope: Scope, send: Send) -> None:
    """Send a line of JSON about the request, and `{}` half a second later.

    `x_forwarded_proto` is the header or null; `is_trusted` is TRUST_X_FORWARDED_PROTO.
    """
    if not _is_signed(scope):
        await _start(send, 404)
        await send({"type": "http.response.body"})
        return
    await _start(send, 200)
    await _part(send, _request_facts(scope), more=True)
    await asyncio.sleep(PAUSE_S)
    await _part(send, {}, more=False)


def _is_signed(scope: Scope) -> bool:
    query = parse_qs(scope["query_string"].decode("latin-1"))
    try:
        _signer.unsign(query.get("token", [""])[0], max_age=VALID_S)
    except BadSignature:
        return False
    return True


def _request_facts(scope: Scope) -> dict[str, Any]:
    proto = dict(scope["headers"]).get(b"x-forwarded-proto")
    return {
        "x_forwarded_proto": proto and proto.decode("latin-1"),
        "is_trusted": settings.TRUST_X_FORWARDED_PROTO,
    }


async def _start(send: Send, status: int) -> None:
    headers = [
        (b"Content-Type", b"application/jsonl"),
        (b"Cache-Control", b"no-store"),
        (b"X-Content-Type-Options", b"nosniff"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def _part(send: Send, value: dict[str, Any], *, more: bool) -> None:
    body = orjson.dumps(value) + b"\n"
    await send({"type": "http.response.body", "body": body, "more_body": more})
