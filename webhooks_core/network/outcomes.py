"""How attempts end, and what each outcome proves about the network."""

from __future__ import annotations

from django.db import models


class Outcome(models.TextChoices):
    """How an attempt ended."""

    OK = "ok"
    HTTP = "http"  # a status that is not 2xx
    TIMEOUT = "timeout"
    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    BLOCKED = "blocked"  # an address that is not allowed
    UNSIGNED = "unsigned"  # the secret cannot be decrypted or used
    INTERRUPTED = "interrupted"  # the dispatcher died


UNREACHED = frozenset({Outcome.DNS, Outcome.CONNECT})
# A receiver that answered anything, or took too long, was reachable.
REACHED = frozenset({Outcome.OK, Outcome.HTTP, Outcome.TLS, Outcome.TIMEOUT})
