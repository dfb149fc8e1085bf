"""Compress large responses by the coding that a client prefers: gzip, and others where installed."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers
from django.utils.module_loading import import_string
from django.utils.text import compress_string

LEAST_BYTES = 1024  # less is not worth the time of either side
# The first of those that a client likes best.
CODINGS = {"zstd": "zstandard.compress", "br": "brotli.compress"}
QUALITY = re.compile(r"q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)", re.IGNORECASE)


def compress(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Compress a response of more than 1 KiB if the client accepts a coding (RFC 9110, 12.5.3)."""
    patch_vary_headers(response, ["Accept-Encoding"])
    if len(response.content) <= LEAST_BYTES:
        return response
    if coding := preferred(request.META.get("HTTP_ACCEPT_ENCODING", "")):
        response.content = encoders()[coding](response.content)
        response["Content-Encoding"] = coding
        if etag := response.get("ETag"):
            response["ETag"] = f"W/{etag.removeprefix('W/')}"
    return response


@lru_cache(maxsize=100)  # clients send few different ones
def preferred(accepted: str) -> str | None:
    """Return the coding that a client likes best; None if it names no coding that is here."""
    qualities = {}
    for part in accepted.lower().split(","):
        name, _, parameters = part.partition(";")
        match = QUALITY.fullmatch(parameters.strip())
        qualities[name.strip()] = float(match[1]) if match else 1.0
    best = max(encoders(), key=lambda coding: qualities.get(coding, 0))
    return best if qualities.get(best, 0) > 0 else None


@lru_cache
def encoders() -> dict[str, Callable[[bytes], bytes]]:
    """Return the functions of the codings that this installation has, the best first."""
    found = {}
    for coding, name in CODINGS.items():
        try:
            found[coding] = import_string(name)
        except ImportError:
            continue
    # Django's adds random bytes, against attacks that measure lengths (BREACH).
    return found | {"gzip": partial(compress_string, max_random_bytes=100)}
