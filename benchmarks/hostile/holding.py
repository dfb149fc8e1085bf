"""Ways to hold connections: responses that are not read, bodies and heads that do not end."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

ADMIN_SCRIPT = "/static/admin/js/vendor/jquery/jquery.js"
REFERENCE = "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"
DECLARED = 32_000_000


def connections(
    count: int, *parts: bytes
) -> Callable[[int], AbstractContextManager[None]]:
    """Return what opens connections that send these parts and read nothing."""

    @contextmanager
    def hold(port: int) -> Iterator[None]:
        with ExitStack() as stack:
            for _ in range(count):
                client = socket.create_connection(("127.0.0.1", port))
                stack.enter_context(client)
                client.setblocking(False)
                for part in parts:
                    _send(client, part)
            yield

    return hold


def _send(client: socket.socket, data: bytes) -> None:
    """Send as much as the server takes now."""
    view = memoryview(data)
    try:
        while view:
            view = view[client.send(view) :]
    except OSError:
        return


def request(path: str) -> bytes:
    return b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % path.encode()


def upload(path: str) -> bytes:
    """Return a request whose body never ends."""
    return (
        b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"X-Tenant-Id: bench\r\nX-Principal-Id: bench\r\n"
        b"Content-Length: %d\r\n\r\n" % (path.encode(), DECLARED)
    )


HOLDERS = {
    "32 connections that read no script": connections(32, request(REFERENCE) * 4),
    "32 connections that read no small script": connections(
        32, request(ADMIN_SCRIPT) * 8
    ),
    "40 bodies of ingest that do not end": connections(
        40, upload("/v1/ingest"), b"x" * (DECLARED - 1)
    ),
    "40 bodies of chat that do not end": connections(
        40,
        upload("/v2/chat/completions").replace(b"32000000", b"19000000"),
        b"x" * 18_000_000,
    ),
    "200 bodies of GraphQL that do not end": connections(
        200, upload("/graphql").replace(b"32000000", b"1000000"), b"x" * 999_999
    ),
    "200 heads that do not end": connections(200, b"GET / HTTP/1.1\r\nX: y\r\n"),
}
