"""Start everything: migrations, demo data, the web server and the background tasks."""

from __future__ import annotations

import os
import socket
import sys
from argparse import ArgumentParser
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DatabaseError
from django.db import connections

from config.demo import data
from config.serving import sockets
from config.serving.supervisor import Program, Supervisor


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()  # they run once the port is taken

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="default: %(default)s")
        parser.add_argument("--port", default="8000", help="default: %(default)s")
        demo = parser.add_mutually_exclusive_group()
        demo.add_argument(
            "--no-demo", action="store_true", help="leave an empty database empty"
        )
        demo.add_argument(
            "--demo",
            action="store_true",
            help="add the missing demo data although the database has users",
        )
        parser.add_argument("--no-web", action="store_true", help="start no web server")
        parser.add_argument(
            "--no-worker", action="store_true", help="start no task cluster"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            listener = self._listener(**options)
            password = self._prepare(**options)
        except sockets.ListenError as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            raise CommandError(f"the database is not usable: {error}") from error
        except KeyboardInterrupt:
            raise CommandError("stopped before anything was started.") from None
        ready = _probe(listener) if listener else lambda: True
        programs = _programs(listener, with_worker=not options["no_worker"])
        sys.exit(
            Supervisor(
                programs,
                say=self._say,
                ready=ready,
                on_ready=lambda: self._announce(password),
            ).run()
        )

    def _listener(self, **options: Any) -> socket.socket | None:
        """Check the options; return the listening socket, or None without a web server."""
        host, port = options["host"], sockets.port_number(options["port"])
        sockets.check_host(host, loopback_only=settings.LOCAL)
        if options["demo"] and not settings.LOCAL:
            raise CommandError("--demo: a production instance gets no demo data.")
        if options["no_web"] and options["no_worker"]:
            raise CommandError("--no-web and --no-worker together leave nothing to do.")
        _adapt_base_url(sockets.origin(host, port))
        return None if options["no_web"] else sockets.listen(host, port)

    def _prepare(self, *, no_demo: bool, demo: bool, **options: Any) -> str | None:
        """Migrate and load the demo data; return the password of a new demo user."""
        password = None
        self.check()
        # Not the one that the next lines mend.
        self.check(tags=[checks.Tags.database], databases=["default"])
        self._say("Preparing the database …")
        call_command("migrate", interactive=False, verbosity=0)
        call_command("sync_gateway_config", verbosity=0)
        if demo or (settings.LOCAL and not no_demo and data.is_wanted()):
            password = data.load()
        connections.close_all()
        return password

    def _announce(self, password: str | None) -> None:
        self._say(f"Signpost is ready at {settings.BASE_URL}/ (Ctrl-C stops it).")
        if password:
            self._say(f"User: {data.USER}   password: {password}   (shown this once)")
            self._say("Log in, open Webhooks, and look at the endpoint that fails.")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _adapt_base_url(origin: str) -> None:
    """Set BASE_URL from --host and --port unless it was given.

    Settings depend on it, so this process starts again with the new value.
    """
    if settings.BASE_URL_GIVEN or origin == settings.BASE_URL:
        return
    os.environ["BASE_URL"] = origin
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - this command again


def _programs(listener: socket.socket | None, *, with_worker: bool) -> list[Program]:
    programs = []
    if listener:
        number = listener.detach()
        programs.append(
            Program("the web server", _command("web", "--fd", str(number)), [number])
        )
    if with_worker:
        programs.append(Program("the task cluster", _command("qcluster")))
    return programs


def _command(*arguments: str) -> list[str]:
    manage = str(settings.BASE_DIR / "manage.py")
    # The checks have been run.
    options = ("--skip-checks", "--exit-with-parent", str(os.getpid()))
    return [sys.executable, manage, *arguments, *options]


def _probe(listener: socket.socket) -> sockets.Probe:
    host = urlsplit(settings.BASE_URL).netloc
    request = f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    return sockets.Probe(listener.family, listener.getsockname(), request.encode())
