"""Receive webhooks, show each and verify its signature; fail or delay responses on request."""

from __future__ import annotations

import signal
import threading
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webhooks_core import endpoints, profiles
from webhooks_core.conf import webhook_settings
from webhooks_core.management import terminal
from webhooks_core.management.argument_types import integer_between, seconds
from webhooks_core.management.receiver import Receiver
from webhooks_core.management.verification import Received, verify
from webhooks_core.network.url_policy import UrlRefusedError


def status_code(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) == 3 and 200 <= int(text) <= 599:
        return int(text)
    raise ArgumentTypeError(f"{text!r} is not a status from 200 to 599")


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="default: %(default)s")
        parser.add_argument(
            "--port",
            type=integer_between(0, 65_535),
            default=9000,
            help="default: %(default)s; 0: any",
        )
        parser.add_argument(
            "--secret",
            action="append",
            default=[],
            help="a signing secret (repeatable; default: WEBHOOK_LISTEN_SECRETS, which no "
            "list of processes shows)",
        )
        parser.add_argument(
            "--status",
            action="append",
            type=status_code,
            help="the response's status (repeatable: one after the other, then the last one)",
        )
        parser.add_argument(
            "--delay",
            type=seconds(0, 3600),
            default=0,
            help="seconds to wait before each response",
        )
        parser.add_argument(
            "--tolerance",
            type=seconds(0, 3600),
            default=300,
            help="the oldest signature to accept, in seconds; 0: any (%(default)s)",
        )
        parser.add_argument(
            "--subscribe",
            metavar="PRODUCT:OWNER",
            help="subscribe this receiver while it listens, as PROFILE:OWNER, "
            "and print a line for each event; for local instances",
        )
        shown = parser.add_mutually_exclusive_group()
        shown.add_argument("--quiet", action="store_true", help="print no bodies")
        shown.add_argument(
            "--json", action="store_true", help="print one JSON object per line"
        )

    def handle(self, *args: Any, host: str, port: int, **options: Any) -> None:
        self._options = options
        self._secrets = [*options["secret"], *webhook_settings.LISTEN_SECRETS]
        try:
            receiver = Receiver(
                host,
                port,
                on_request=self._show,
                on_fault=self._report,
                statuses=options["status"] or (204,),
                delay_s=options["delay"],
            )
        except (OSError, UnicodeError, TypeError) as error:  # the last: no host name
            raise CommandError(
                f"cannot listen on {host} port {port}: {error}"
            ) from error
        with receiver:
            if options["subscribe"] is None:
                self._serve(receiver)
            else:
                self._serve_subscribed(receiver, options["subscribe"])

    def _serve_subscribed(self, receiver: Receiver, subscriber: str) -> None:
        """Subscribe the receiver to all events of an owner until it stops."""
        product, _, name = subscriber.partition(":")
        url = f"{receiver.url}/"
        try:
            profile = profiles.get(product)
            profile.url_policy.check_syntax(url)
            types = [
                each.name for each in profile.event_types.values() if each.subscribable
            ]
            created = endpoints.create(
                profile=product,
                owner=profile.owner_named(name),
                url=url,
                event_types=types,
            )
        except KeyError as error:
            known = ", ".join(profile.name for profile in profiles.registered())
            raise CommandError(f"--subscribe: PRODUCT is one of {known}") from error
        except (LookupError, UrlRefusedError) as error:
            raise CommandError(f"--subscribe: {error}") from error
        except endpoints.QuotaExceededError as error:
            raise CommandError(f"--subscribe: {name} has no free endpoint") from error
        self._secrets = [created.secret]
        self._options["quiet"] = True
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
        verification = verify(
            received, secrets=self._secrets, tolerance_s=self._options["tolerance"]
        )
        if self._options["json"]:
            self._write(self.stdout, terminal.as_json(received, verification, status))
            return
        self._print(terminal.one_line(received, verification, status))
        if not self._options["quiet"]:
            self._print(terminal.body(received))

    def _report(self, message: str) -> None:
        self._write(self.stderr, f"({message})")

    def _print(self, line: str) -> None:
        # With --json standard output holds nothing else.
        self._write(self.stderr if self._options["json"] else self.stdout, line)

    def _write(self, stream: Any, line: str) -> None:
        stream.write(line)
        stream.flush()
