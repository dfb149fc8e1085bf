"""Run the web server alone, until SIGTERM or Ctrl-C, in one process or in several."""

from __future__ import annotations

import os
import socket
import sys
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Iterator, Sequence
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.management.base import BaseCommand, CommandError

from config.serving import server, sockets
from config.serving.supervisor import Program, Supervisor
from gateway import static_subscriptions
from webhooks_core.management.argument_types import integer_between
from webhooks_core.worker import processes

MOST_PROCESSES = 64


class Command(BaseCommand):
    help = __doc__
    # These depend on the deployment. The others check the code, and would load every page of the
    # admin into a process that may serve only chat: 13 MB, a second.
    requires_system_checks = (checks.Tags.security,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="default: %(default)s")
        parser.add_argument("--port", default="8000", help="default: %(default)s")
        parser.add_argument(
            "--processes",
            type=integer_between(1, MOST_PROCESSES),
            default=1,
            metavar="N",
            help="serve the port by so many processes; default: %(default)s",
        )
        parser.add_argument(
            "--own-port",
            metavar="PORT",
            help="with --processes: the first process also listens on this port, the second "
            "on the next one, and so on, for scrapes of /metrics",
        )
        parser.add_argument(
            "--fd", type=integer_between(0), action="append", help=SUPPRESS
        )
        processes.add_parent_argument(parser)

    def handle(
        self,
        *args: Any,
        host: str,
        port: str,
        fd: Sequence[int] | None,
        exit_with_parent: int | None,
        **options: Any,
    ) -> None:
        processes.exit_with_parent(exit_with_parent)
        if options["processes"] > 1:
            self._serve_together(host, port, options["processes"], options["own_port"])
        if options["own_port"] is not None:
            raise CommandError("--own-port: only with --processes above 1.")
        listeners = [*map(_inherited, fd)] if fd else [_listener(host, port)]
        static_subscriptions.sync_at_start()
        from config.asgi import application

        server.serve(application, listeners)

    def _serve_together(
        self, host: str, port: str, number: int, own_port: str | None
    ) -> None:
        """Serve one port by several processes; one that dies is started again."""
        if settings.CHAT_REQUESTS_PER_MINUTE and not settings.REDIS_URL:
            raise CommandError(
                "--processes: CHAT_REQUESTS_PER_MINUTE needs REDIS_URL, because without it "
                "each process counts for itself."
            )
        shared = _listener(host, port).detach()
        programs = [
            Program(f"web process {place + 1}", _command(kept), kept)
            for place, own in enumerate(_own(host, own_port, number))
            for kept in [[shared, *own]]
        ]
        sys.exit(Supervisor(programs, say=self._say, restarts=True).run())

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _own(host: str, first_port: str | None, number: int) -> Iterator[list[int]]:
    """Yield the socket that each process has for itself, if any."""
    for place in range(number):
        if first_port is None:
            yield []
        else:
            port = sockets.port_number(first_port) + place
            yield [_listener(host, str(port)).detach()]


def _command(kept: Sequence[int]) -> list[str]:
    manage = str(settings.BASE_DIR / "manage.py")
    numbers = [word for number in kept for word in ("--fd", str(number))]
    # The checks have been run.
    options = ("--skip-checks", "--exit-with-parent", str(os.getpid()))
    return [sys.executable, manage, "web", *numbers, *options]


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
