"""What a batch reads of endpoints and events, and writes of successes: one statement each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from django.db import connection

from webhooks_core.database.statements import (
    execute,
    fetch,
    fetch_binary,
    ids,
    statement,
)
from webhooks_core.models import Endpoint
from webhooks_core.secrets import EncryptedText

# What people read alone.
UNREAD = (
    *("event_types", "filter", "description", "last_success_at", "failing_since"),
    *("failed_attempts", "alike_failures", "last_outcome", "last_error"),
    *("last_response", "disabled_at", "enabled_at", "refused_at"),
)
_COLUMNS = ", ".join(
    field.attname
    for field in Endpoint._meta.concrete_fields  # noqa: SLF001 - Django documents it
    if field.name not in UNREAD
)
_BY_PK = statement(f"SELECT {_COLUMNS} FROM webhooks_core_endpoint WHERE id {{among}}")  # noqa: S608


def by_pk(pks: Collection[int]) -> dict[int, Endpoint]:
    """Return endpoints by their keys, without what a request does not need."""
    rows = Endpoint.objects.raw(_BY_PK[connection.vendor], [ids(pks)])
    return {endpoint.pk: endpoint for endpoint in rows}


_SECRETS = statement(
    "SELECT endpoint_id, value FROM webhooks_core_endpointsecret"
    " WHERE endpoint_id {among} AND (expires_at IS NULL OR expires_at > %s)"
    " ORDER BY id DESC"
)


def secrets(pks: Collection[int], now: datetime) -> Iterator[tuple[int, EncryptedText]]:
    """Yield the secrets of endpoints: EndpointSecretQuerySet.current."""
    for pk, ciphertext in fetch(_SECRETS, ids(pks), now):
        yield pk, EncryptedText(ciphertext)


class Body(NamedTuple):
    """What of an event is needed to send it, with headers for one endpoint alone."""

    public_id: str
    type: str
    bytes: bytes
    headers: Mapping[str, str] = {}


_BODIES = statement(
    "SELECT id, public_id, type, body FROM webhooks_core_event WHERE id {among}"
)


def bodies(event_pks: Collection[int]) -> dict[int, Body]:
    """Return the bodies of events by their keys."""
    rows = fetch_binary(_BODIES, ids(event_pks))
    return {pk: Body(id_, kind, bytes(body)) for pk, id_, kind, body in rows}


_SUCCEED = statement(
    "UPDATE webhooks_core_endpoint SET last_attempt_at = %s, last_success_at = %s,"
    " consecutive_failures = 0, timeouts = 0, hanging_since = NULL, failing_since = NULL,"
    " failed_attempts = 0, alike_failures = 0 WHERE id {among}"
)


def succeed(pks: Collection[int], now: datetime) -> None:
    """Note a success of endpoints: no failures in a row, no time-outs."""
    execute(_SUCCEED, now, now, ids(pks))
