"""The web server: uvicorn, without those of its defaults that weaken the application."""

from __future__ import annotations

import errno
import signal
import socket
import sys
from argparse import ArgumentParser
from typing import Any

import structlog
import uvicorn
from django.conf import settings
from django.core.management.base import CommandError
from uvicorn.supervisors import Multiprocess

from config.environment import is_loopback
from config.serving.uvicorn_protocol import HttpProtocol
from webhooks_core.management.command_line import integer_between

GRACE_S = 30
BACKLOG = 2048

log = structlog.stdlib.get_logger(__name__)


def add_address_arguments(parser: ArgumentParser) -> None:
    """Add --host and --port to a command, for listen()."""
    parser.add_argument("--host", default="127.0.0.1", help="default: %(default)s")
    parser.add_argument(
        "--port",
        type=integer_between(1, 65_535),
        default=8000,
        help="default: %(default)s",
    )


def origin(host: str, port: int) -> str:
    """Return the http origin of a listener, an IPv6 address in brackets."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises CommandError, as when the port is taken."""
    if settings.LOCAL and not is_loopback(host):
        raise CommandError(
            f"--host: {host!r} is not a loopback address: a local instance serves this "
            "machine only; set ENVIRONMENT=production to serve other machines."
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            raise CommandError(
                f"cannot listen on {host} port {port}: it is taken. Stop what listens there, or "
                "choose another one: --port N (with make: make run ARGS='--port N')."
            ) from error
        raise CommandError(f"cannot listen on {host} port {port}: {error}") from error


def configuration(application: Any, *, processes: int = 1) -> uvicorn.Config:
    """Return uvicorn's configuration for an ASGI application, or for its dotted name.

    `proxy_headers` stays off: otherwise `X-Forwarded-For` replaces the peer's address, and any
    client could claim to be a loopback peer.
    """
    return uvicorn.Config(
        application,
        workers=processes,
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


def serve(listener: socket.socket, *, processes: int) -> None:
    """Serve the site in one process or several until SIGTERM or SIGINT; then exit with 0."""
    log.info(
        "web server starts",
        version=settings.VERSION,
        environment=settings.ENVIRONMENT,
        address=origin(*listener.getsockname()[:2]),
    )
    config = configuration("config.asgi:application", processes=processes)
    # After its shutdown uvicorn raises the signal again for the previous handler.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    if processes == 1:
        uvicorn.Server(config).run(sockets=[listener])
    else:
        Multiprocess(config, sockets=[listener]).run()
