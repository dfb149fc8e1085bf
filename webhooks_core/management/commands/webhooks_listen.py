"""Receive webhooks on this machine, verify each signature and print a line for each event."""

from __future__ import annotations

import errno
import logging
import signal
import threading
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webhooks_core import endpoints, profiles
from webhooks_core.management.command_line import integer_between
from webhooks_core.management.receiver import Received, Receiver, verify
from webhooks_core.network.url_policy import UrlRefusedError

MARKS = {True: "✔", False: "✘", None: "·"}


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--subscribe",
            metavar="PRODUCT:OWNER",
            help="subscribe this receiver while it listens, for local instances",
        )
        parser.add_argument(
            "--secret",
            action="append",
            default=[],
            help="a signing secret to verify with (repeatable)",
        )
        parser.add_argument(
            "--status",
            action="append",
            type=integer_between(200, 599),
            help="the response's status (repeatable: one after the other, then the last one)",
        )
        parser.add_argument(
            "--port",
            type=integer_between(0, 65_535),
            default=9000,
            help="default: %(default)s; 0: any",
        )

    def handle(
        self,
        *args: Any,
        subscribe: str | None,
        secret: list[str],
        status: list[int] | None,
        port: int,
        **options: Any,
    ) -> None:
        self._secrets = secret
        try:
            receiver = Receiver(port, on_request=self._show, statuses=status or (204,))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise CommandError(
                    f"cannot listen on port {port}: it is taken; choose another one: --port N"
                ) from error
            raise CommandError(f"cannot listen on port {port}: {error}") from error
        with receiver:
            if subscribe is None:
                self._serve(receiver)
            else:
                # Of the endpoint that is made and deleted.
                logging.disable(logging.INFO)
                try:
                    self._serve_subscribed(receiver, subscribe)
                finally:
                    logging.disable(logging.NOTSET)

    def _serve_subscribed(self, receiver: Receiver, subscriber: str) -> None:
        """Subscribe the receiver to all events of an owner until it stops."""
        product, _, name = subscriber.partition(":")
        url = f"{receiver.url}/"
        profile = profiles.find(product)
        if profile is None:
            known = ", ".join(profile.name for profile in profiles.registered())
            raise CommandError(f"--subscribe: PRODUCT is one of {known}")
        try:
            profile.url_policy.check_syntax(url)
            created = endpoints.create(
                profile=product,
                owner=profile.owner_named(name),
                url=url,
                event_types=profile.everything,
            )
        except UrlRefusedError as error:
            raise CommandError(f"--subscribe: {error}") from error
        except endpoints.QuotaExceededError as error:
            raise CommandError(
                f"--subscribe: {name} has {profile.quota} of {profile.quota} endpoints: delete one"
            ) from error
        self._secrets = [created.secret]
        try:
            self._serve(receiver)
        finally:
            endpoints.delete(created.endpoint)

    def _serve(self, receiver: Receiver) -> None:
        # No exception: Python may ignore one that a signal handler raises.
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        receiver.timeout = 0.1
        self._print(f"Listening on {receiver.url}, any path. Stop with Ctrl-C.")
        if not self._secrets:
            self._print("No --secret was given: signatures are not checked.")
        while not stop.is_set():
            receiver.handle_request()
        self._print("Stopped.")

    def _show(self, received: Received, status: int) -> None:
        """Print a request as one line without control characters."""
        ids = filter(None, (received.event_id, received.delivery_id))
        names = [received.event_type or "no type", *ids]
        shown = "  ".join(ascii(name[:200])[1:-1] for name in names)
        is_verified, message = verify(received, secrets=self._secrets)
        at = time.strftime("%H:%M:%S", time.localtime(received.at))
        self._print(f"{at}  {MARKS[is_verified]} {shown}  ({message}) → {status}")

    def _print(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
