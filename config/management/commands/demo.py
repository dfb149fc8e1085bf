"""Show one round trip of each service against a running instance, step by step."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DatabaseError
from environs import EnvError

from config import environment
from config.demo import data, round_trips
from config.demo.steps import Instance, StepError
from webhooks_core.management.argument_types import seconds


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--url",
            default=settings.BASE_URL,
            help="the address of the instance (%(default)s)",
        )
        parser.add_argument(
            "--user", default=data.USER, help="the account to use (%(default)s)"
        )
        parser.add_argument(
            "--failing",
            action="store_true",
            help="respond to the first attempt with 500 and wait a minute for the retry",
        )
        parser.add_argument(
            "--timeout",
            type=seconds(1, 3600),
            default=30,
            metavar="SECONDS",
            help="how long to wait for an event (%(default)s)",
        )

    def handle(self, *args: Any, url: str, user: str, **options: Any) -> None:
        instance = Instance(_origin(url), self._say, options["timeout"])
        try:
            with instance.step(f"The instance at {instance.url} answers"):
                instance.request("GET", "/healthz")
            round_trips.run(instance, _account(user), failing=options["failing"])
        except DatabaseError as error:
            raise CommandError(f"the database is not usable: {error}") from error
        except KeyboardInterrupt:
            raise CommandError("interrupted.") from None
        self._say("All of it works.")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _origin(url: str) -> str:
    try:
        return environment.origin(url)
    except (EnvError, ValueError) as error:
        raise CommandError(f"--url: {error}") from error


def _account(name: str) -> AbstractUser:
    if user := get_user_model().objects.filter(username=name).first():
        return user
    raise StepError(f"there is no user {name!r} in this database: name one with --user")
