"""Run the web server alone, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import socket
from argparse import SUPPRESS, ArgumentParser
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.management.base import BaseCommand, CommandError

from config.serving import server, sockets
from gateway import static_subscriptions
from webhooks_core.management.argument_types import integer_between
from webhooks_core.worker import processes


class Command(BaseCommand):
    help = __doc__
    # These depend on the deployment. The others check the code, and would load every page of the
    # admin into a process that may serve only chat: 13 MB, a second.
    requires_system_checks = (checks.Tags.security,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="default: %(default)s")
        parser.add_argument("--port", default="8000", help="default: %(default)s")
        parser.add_argument("--fd", type=integer_between(0), help=SUPPRESS)
        parser.add_argument(
            "--exit-with-parent",
            type=int,
            metavar="PID",
            help="exit when this parent process exits",
        )

    def handle(
        self,
        *args: Any,
        host: str,
        port: str,
        fd: int | None,
        exit_with_parent: int | None,
        **options: Any,
    ) -> None:
        if exit_with_parent is not None:
            processes.exit_with_parent(exit_with_parent)
        listener = _listener(host, port) if fd is None else _inherited(fd)
        settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
        static_subscriptions.sync_at_start()
        from config.asgi import application

        server.serve(application, listener)


def _inherited(fd: int) -> socket.socket:
    try:
        return socket.socket(fileno=fd)
    except OSError as error:
        raise CommandError(f"--fd: {fd} is no socket: {error.strerror}") from error


def _listener(host: str, port: str) -> socket.socket:
    try:
        sockets.check_host(host, loopback_only=settings.LOCAL)
        return sockets.listen(host, sockets.port_number(port))
    except sockets.ListenError as error:
        raise CommandError(str(error)) from error
