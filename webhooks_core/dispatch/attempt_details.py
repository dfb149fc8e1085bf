"""What an attempt sent and received, as it is stored for people."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import orjson

from webhooks_core.encryption import HIDDEN
from webhooks_core.models import Endpoint
from webhooks_core.network.transport import AttemptResult


def details(result: AttemptResult, endpoint: Endpoint, *, lease: int) -> str:
    """Return JSON: `lease`, and of a request that was sent `request` and `response`.

    Both are lists of `[header, value]`, in the order of the wire, without the values of custom headers:
    they may hold credentials. Also `address`, and in milliseconds since the start of the attempt
    `connected`, `secured` (neither on a kept connection) and `first_byte`.
    """
    fields: dict[str, Any] = {"lease": lease}
    if result.request_head:
        fields["request"] = _sent(result.request_head, _custom_names(endpoint))
        fields["response"] = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in result.response_headers
        ]
        fields["address"] = result.address
    times = result.timings._asdict().items()
    fields |= {name: value for name, value in times if value is not None}
    return orjson.dumps(fields).decode()


def _sent(head: bytes, custom: Collection[str]) -> list[tuple[str, str]]:
    """Return the headers of a request."""
    lines = (line.partition(": ") for line in head.decode().split("\r\n")[1:-2])
    return [(name, HIDDEN if name in custom else value) for name, _, value in lines]


def _custom_names(endpoint: Endpoint) -> Collection[str]:
    encrypted = endpoint.custom_headers
    return () if encrypted is None else orjson.loads(encrypted.decrypt()).keys()
