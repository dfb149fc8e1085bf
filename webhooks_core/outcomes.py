"""How attempts end, and what each end proves about the network."""

from __future__ import annotations

from django.db import models


class Outcome(models.TextChoices):
    """How an attempt ended."""

    OK = "ok"
    HTTP = "http"  # an answer that is not 2xx
    TIMEOUT = "timeout"
    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    BLOCKED = "blocked"  # an address that must not be called
    UNSIGNED = "unsigned"  # the secret cannot be read
    INTERRUPTED = "interrupted"  # our own crash


UNREACHED = frozenset({Outcome.DNS, Outcome.CONNECT})
# Whatever else a receiver did, or took too long for: something was there.
REACHED = frozenset({Outcome.OK, Outcome.HTTP, Outcome.TLS, Outcome.TIMEOUT})
# What a stored attempt can prove: for a time-out it does not tell on what connection.
REACHED_STORED = REACHED - {Outcome.TIMEOUT}
