"""Who changes an endpoint. Each change is one line of the log."""

from __future__ import annotations

from typing import Any, NamedTuple

import structlog
from django.db import transaction

log = structlog.stdlib.get_logger(__name__)


class Actor(NamedTuple):
    """Who does something: `owner`, `operator`, `command`, `configuration` or `engine`; a name."""

    kind: str
    name: str = ""


ENGINE = Actor("engine")
COMMAND = Actor("command")
CONFIGURATION = Actor("configuration")


def owner(name: str) -> Actor:
    """Return a person or program that acts for the owner: an account, a principal."""
    return Actor("owner", name)


def operator(name: str) -> Actor:
    """Return a user of the admin."""
    return Actor("operator", name)


def record(endpoint_id: str, action: str, *, by: Actor, **details: Any) -> None:
    """Log a change of an endpoint, by its public id, after the caller's commit.

    `details` never hold a secret or the value of a header.
    """
    line = {"endpoint": endpoint_id, "action": action, "by": by.kind, "actor": by.name}
    transaction.on_commit(
        lambda: log.info("endpoint changed", **line, **details), robust=True
    )
