"""The stream that `manage.py doctor --reach` reads, to see whether it arrives in parts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from urllib.parse import urlencode

import orjson
from django.conf import settings
from django.core.signing import BadSignature, TimestampSigner
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache

PATH = "/healthz/stream"
PAUSE_S = 0.5
VALID_S = 60

_signer = TimestampSigner(salt="config.operations.stream_probe")


def address() -> str:
    """Return a path with a signed query, valid for a minute; without a signature it is 404."""
    return f"{PATH}?{urlencode({'token': _signer.sign('stream')})}"


@never_cache
def stream(request: HttpRequest) -> HttpResponseBase:
    """Send a line of JSON about the request, and `{}` half a second later.

    `x_forwarded_proto` is the header or null; `is_trusted` is TRUST_X_FORWARDED_PROTO.
    """
    try:
        _signer.unsign(request.GET.get("token", ""), max_age=VALID_S)
    except BadSignature:
        return HttpResponse(status=404)
    facts = {
        "x_forwarded_proto": request.headers.get("X-Forwarded-Proto"),
        "is_trusted": settings.TRUST_X_FORWARDED_PROTO,
    }
    return StreamingHttpResponse(_parts(facts), content_type="application/jsonl")


def _parts(facts: Mapping[str, object]) -> Iterator[bytes]:
    yield orjson.dumps(facts) + b"\n"
    yield b""  # the server sends what it has
    time.sleep(PAUSE_S)
    yield b"{}\n"
