"""Verify a received request; name the part that differs: secret, timestamp, body, header."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from webhooks_core.conf import webhook_settings
from webhooks_core.management.argument_types import seconds
from webhooks_core.management.output import add_json_argument, format_output
from webhooks_core.models import Delivery
from webhooks_core.owners import payloads
from webhooks_core.secrets import SecretUnreadableError
from webhooks_core.signing.diagnosis import Sent, diagnose
from webhooks_core.signing.verification import Received

DIFFERS = 1  # exit status
unusable = partial(CommandError, returncode=2)


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "body", help="the file with the body's bytes; - is standard input"
        )
        parser.add_argument(
            "-H",
            "--header",
            action="append",
            default=[],
            metavar="'NAME: VALUE'",
            help="a header as received (repeatable): the signature, and the "
            "timestamp where it has a header of its own",
        )
        parser.add_argument(
            "--secret",
            action="append",
            default=[],
            help="a secret of the receiver (repeatable; default: "
            "WEBHOOK_LISTEN_SECRETS, or the endpoint of --delivery)",
        )
        parser.add_argument(
            "--delivery",
            metavar="ID",
            help="compare with what this instance sent: the value of the header "
            "that ends in -Delivery",
        )
        parser.add_argument(
            "--tolerance",
            type=seconds(0, 86_400 * 365),
            default=0,
            metavar="SECONDS",
            help="the maximum age of a timestamp (default: any age)",
        )
        add_json_argument(parser)

    def handle(self, *args: Any, body: str, **options: Any) -> None:
        sent = _sent(options["delivery"]) if options["delivery"] else None
        secrets = options["secret"] or webhook_settings.LISTEN_SECRETS
        if not secrets and sent:
            secrets = list(sent.secrets)
        if not secrets:
            message = "no secret: give --secret, or --delivery to use its endpoint's."
            raise unusable(message)
        received = Received(
            path="/",
            headers=_headers(options["header"]),
            body=_read(body),
            at=time.time(),
        )
        faults = diagnose(
            received, secrets=secrets, tolerance_s=options["tolerance"], sent=sent
        )
        lines = [f"{fault.part}: {fault.message}" for fault in faults]
        text = "\n".join(lines) or "The signature holds."
        data = {"verified": not faults, "faults": [fault._asdict() for fault in faults]}
        self.stdout.write(format_output(data, text, as_json=options["json"]))
        if faults:
            sys.exit(DIFFERS)


def _headers(given: list[str]) -> dict[str, str]:
    headers = {}
    for line in given:
        name, colon, value = line.partition(":")
        if not colon:
            raise unusable(f"--header: {name[:40]!r} is not `Name: value`.")
        headers[name.strip().lower()] = value.removeprefix(" ")
    return headers


def _read(body: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if body == "-" else Path(body).read_bytes()
    except OSError as error:
        raise unusable(f"cannot read {body}: {error.strerror}.") from error


def _sent(public_id: str) -> Sent:
    """Return what this instance sent: of a delivery, by its id or that of its event."""
    rows = Delivery.objects.select_related("event", "endpoint")
    delivery = (
        rows.filter(public_id=public_id).first()
        or rows.filter(event__public_id=public_id).order_by("pk").first()
    )
    if delivery is None:
        raise unusable(f"there is no delivery {public_id}.")
    try:
        secrets = delivery.endpoint.secrets(now=timezone.now())
    except SecretUnreadableError as error:
        message = "none of WEBHOOK_SECRET_KEYS decrypts the endpoint's secret."
        raise unusable(message) from error
    return payloads.sent(delivery, secrets)
