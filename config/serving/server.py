"""The web server: uvicorn, without those of its defaults that weaken the application."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

import structlog
import uvicorn
from django.conf import settings

from config.serving import sockets
from config.serving.uvicorn_protocol import HttpProtocol

GRACE_S = 30

log = structlog.stdlib.get_logger(__name__)


class Server(uvicorn.Server):
    """Answers also the connections that the kernel accepted before the port closed."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        clients = [client for each in sockets or () for client in _accepted(each)]
        for listening in self.servers:  # at once: what comes now is refused, not reset
            listening.close()
        loop = asyncio.get_running_loop()
        for client in clients:
            await loop.connect_accepted_socket(self._protocol, client)
        await super().shutdown(sockets)

    def _protocol(self) -> HttpProtocol:
        state = self.lifespan.state
        return HttpProtocol(self.config, self.server_state, state)


def _accepted(listener: socket.socket) -> Iterator[socket.socket]:
    """Accept the connections that wait for a listener which does not block."""
    with suppress(OSError):
        while True:
            yield listener.accept()[0]


def server(application: Any) -> uvicorn.Server:
    """Return a server for an ASGI application.

    `proxy_headers` stays off: otherwise `X-Forwarded-For` replaces the peer's address, and any
    client could claim to be a loopback peer.
    """
    return Server(
        uvicorn.Config(
            application,
            proxy_headers=False,
            lifespan="on",
            http=HttpProtocol,
            ws="none",
            server_header=False,
            access_log=False,  # config/operations/logs.py logs every request
            log_config=None,
            log_level="warning",
            timeout_keep_alive=settings.WEB_KEEP_ALIVE_S,
            timeout_graceful_shutdown=GRACE_S,
        )
    )


def serve(application: Any, listeners: list[socket.socket]) -> None:
    """Serve on sockets that listen already, until SIGTERM or SIGINT."""
    web_server = server(application)

    def stop(_number: int, _frame: FrameType | None) -> None:
        web_server.should_exit = True

    # uvicorn handles these signals and, after its shutdown, raises them again for the previous
    # handlers. The default handler would make an orderly end look like a crash.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    addresses = [sockets.origin(*each.getsockname()[:2]) for each in listeners]
    log.info(
        "web server starts",
        version=settings.VERSION,
        environment=settings.ENVIRONMENT,
        address=" ".join(addresses),
    )
    web_server.run(sockets=listeners)
