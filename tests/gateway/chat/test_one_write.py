"""A response in one write has the bytes of one that uvicorn writes in parts, and the same record."""

import json
import re
from contextlib import suppress
from http.client import HTTPResponse
from operator import attrgetter
from typing import Any

import pytest

from gateway.configuration.shapes import Allow
from tests.connections import connected, read
from tests.gateway.chat.harness import IDENTITY, MESSAGES, Gateway
from tests.gateway.chat.mock_upstream import COMPLETION, WHOLE_STREAM, answers, sends

LINES = {**IDENTITY, "Host": "x", "X-Request-Id": "req-7"}
CLOSE = {"Connection": "close"}
# When the request differs in one thing from one that is answered in one write.
CASES: dict[str, dict[str, Any]] = {
    "a completion": {},
    "OpenAI's": {"path": "/v1/chat/completions"},
    "the client closes": {"lines": CLOSE},
    "HTTP/1.0": {"version": "1.0"},
    "a stream": {"fields": {"stream": True}, "script": sends(*WHOLE_STREAM)},
    "no model": {"fields": {"model": "absent"}},
    "not JSON": {"body": b"{"},
    "no identity": {"lines": {"X-Tenant-Id": "a b"}},
    "another method": {"method": "PUT"},
    "models": {"method": "GET", "path": "/v1/models", "body": b""},
    "no body": {"method": "HEAD", "path": "/v1/models", "body": b""},
    "refused": {"script": answers({}, 400)},
    "limited": {
        "script": answers({}, 429, Retry_After="7"),
        "path": "/v1/chat/completions",
    },
    "fallbacks": {"fallbacks": ("other",)},
}


def exchange(gateway: Gateway, case: dict[str, Any], *, is_pipelined: bool) -> Any:
    """Send a request and another one, behind it or after its response; return all that comes.

    Without the sizes of chunks: how a stream is cut depends on when its parts arrive.
    """
    value = {"model": "small", "messages": MESSAGES, **case.get("fields", {})}
    body = case.get("body", json.dumps(value).encode())
    lines = {**LINES, "Content-Length": str(len(body)), **case.get("lines", {})}
    method, path = case.get("method", "POST"), case.get("path", "/v2/chat/completions")
    first = head(f"{method} {path} HTTP/{case.get('version', '1.1')}", lines) + body
    following = head("GET /v1/models/small HTTP/1.1", LINES | CLOSE)
    with connected(gateway.url) as client:
        if is_pipelined:
            client.sendall(first + following)
            return re.sub(rb"\r\n[0-9a-f]+\r\n", b"", read(client))
        client.sendall(first)
        response = HTTPResponse(client, method=method)
        response.begin()
        facts = response.version, response.reason, response.getheaders()
        whole = response.status, *facts, response.read()
        with suppress(OSError):  # the server may have closed the connection
            client.sendall(following)
        return *whole, read(client)


def head(line: str, lines: dict[str, str]) -> bytes:
    texts = [f"{name}: {text}" for name, text in lines.items()]
    return "\r\n".join((line, *texts, "", "")).encode()


def record(gateway: Gateway) -> list[tuple[Any, ...]]:
    facts = attrgetter(
        *("endpoint.name", "target", "request_id", "request", "status", "failure"),
        *("error_status", "ending", "usage", "is_estimated", "response_headers"),
    )
    return [facts(context) for context in gateway.kept.completed]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("is_pipelined", [False, True])
def test_one_write_changes_neither_bytes_nor_records(
    gateway, upstream, case, is_pipelined
):
    upstream.script = case.get("script", answers(COMPLETION))
    results = []
    for gateway.is_flat in (False, True):
        gateway.reset()
        gateway.declare(fallbacks=case.get("fallbacks", ()), allow=Allow())
        came = exchange(gateway, case, is_pipelined=is_pipelined)
        results.append((came, record(gateway)))
    assert results[0] == results[1]
