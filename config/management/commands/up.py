"""Start everything: migrations, demo data, the web server and the background tasks."""

from __future__ import annotations

import logging
import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DatabaseError
from django.db import connections

from config.demo import data
from config.operations import own_requests
from config.serving import server
from config.serving.supervisor import Supervisor


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()  # they run once the port is known to be free

    def add_arguments(self, parser: ArgumentParser) -> None:
        server.add_address_arguments(parser)
        parser.add_argument(
            "--no-demo", action="store_true", help="leave an empty database empty"
        )
        parser.add_argument("--no-web", action="store_true", help="start no web server")
        parser.add_argument(
            "--no-worker", action="store_true", help="start no task cluster"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], str(options["port"])
        programs = {}
        if not options["no_web"]:
            server.listen(host, options["port"]).close()
            programs["the web server"] = _command("web", "--host", host, "--port", port)
        if not options["no_worker"]:
            programs["the task cluster"] = _command("qcluster")
        if not programs:
            raise CommandError("--no-web and --no-worker together leave nothing to do.")
        login = self._prepare(**options)
        origin = server.origin(host, options["port"])
        url = settings.BASE_URL if settings.BASE_URL_GIVEN else origin
        status = Supervisor(self._say).run(
            programs,
            os.environ | {"BASE_URL": url},
            ready=lambda: options["no_web"] or _answers(origin),
            on_ready=lambda: self._announce(url, login),
        )
        sys.exit(status)

    def _prepare(self, *, no_demo: bool, **options: Any) -> list[str]:
        """Migrate and load the demo data; return lines on how to log in."""
        password = None
        self.check()
        self._say("Preparing the database …")
        try:
            # Not the one that the next lines mend.
            self.check(tags=[checks.Tags.database], databases=["default"])
            call_command("migrate", interactive=False, verbosity=0)
            call_command("sync_gateway_config", verbosity=0)
            if settings.LOCAL and not no_demo and data.is_wanted():
                logging.disable(logging.INFO)  # of each endpoint that is made
                password = data.load()
                logging.disable(logging.NOTSET)
            login = _login(password)
        except DatabaseError as error:
            raise CommandError(f"the database is not usable: {error}") from error
        connections.close_all()
        return login

    def _announce(self, url: str, login: list[str]) -> None:
        for line in (f"Signpost is ready at {url}/ (Ctrl-C stops it).", *login):
            self._say(line)

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _login(password: str | None) -> list[str]:
    user = f"User: {data.USER}   "
    if password:
        return [
            f"{user}password: {password}   (shown this once)",
            "Log in, open Webhooks, and look at the endpoint that fails.",
        ]
    if settings.LOCAL and data.has_user():
        return [f"{user}(a new password: manage.py changepassword {data.USER})"]
    return []


def _command(*arguments: str) -> list[str]:
    manage = str(settings.BASE_DIR / "manage.py")
    # The checks have been run.
    options = ("--skip-checks", "--exit-with-parent", str(os.getpid()))
    return [sys.executable, manage, *arguments, *options]


def _answers(origin: str) -> bool:
    try:
        return own_requests.session().get(f"{origin}/healthz", timeout=1).ok
    except OSError:  # every error of requests is one
        return False
