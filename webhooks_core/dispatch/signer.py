"""What is sent of a claim: its body, which a profile may replace, and headers with the signatures."""

from __future__ import annotations

import base64
import hmac
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import orjson
from django.db.models import F

from webhooks_core import profiles
from webhooks_core.dispatch import sql
from webhooks_core.dispatch.sql import DueDelivery
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.profiles import Prepared, Sending, SigningContext
from webhooks_core.secrets import EncryptedText
from webhooks_core.signing.schemes import standard_key


class Body(NamedTuple):
    """What of an event is needed to send it, with headers for one endpoint alone."""

    public_id: str
    type: str
    bytes: bytes
    headers: Mapping[str, str] = {}


def prepare(
    due: Sequence[DueDelivery], endpoints: Mapping[int, Endpoint], *, lease: int
) -> dict[int, Body]:
    """Return what is sent for each claimed delivery, by its primary key.

    Profiles may replace it, or refuse: then the delivery fails here, and is left out.
    """
    bodies = _bodies({row.event_pk for row in due})
    sent = {row.pk: bodies[row.event_pk] for row in due}
    refused: dict[str, list[int]] = defaultdict(list)
    for name in {endpoints[pk].profile for pk in {row.queue for row in due}}:
        if (prepare_all := profiles.get(name).prepare) is None:
            continue
        rows = [row for row in due if endpoints[row.queue].profile == name]
        for pk, prepared in prepare_all(_sendings(rows, bodies)).items():
            if isinstance(prepared, Prepared):
                body, headers = prepared
                sent[pk] = sent[pk]._replace(bytes=body, headers=headers)
            else:
                refused[prepared].append(pk)
                del sent[pk]
    for error, pks in refused.items():
        claimed = Delivery.objects.claimed(pks, lease=lease)
        claimed.update(attempts=F("attempts") - 1)  # none was made
        claimed.fail(error=error)
    return sent


def _bodies(event_pks: Collection[int]) -> dict[int, Body]:
    rows = sql.bodies(event_pks)
    return {pk: Body(id_, kind, bytes(body)) for pk, id_, kind, body in rows}


def _sendings(rows: Iterable[DueDelivery], bodies: Mapping[int, Body]) -> list[Sending]:
    pairs = [(row, bodies[row.event_pk]) for row in rows]
    return [
        Sending(row.pk, row.queue, row.event_pk, body.type, body.bytes)
        for row, body in pairs
    ]


class RequestSigner:
    """Signs the requests of one endpoint, as it is at this moment."""

    def __init__(self, endpoint: Endpoint, secrets: Sequence[EncryptedText]) -> None:
        self._endpoint = endpoint
        self._profile = profiles.get(endpoint.profile)
        self._encrypted_secrets = secrets

    @cached_property
    def _secrets(self) -> list[str]:
        return [secret.decrypt() for secret in self._encrypted_secrets]

    def headers(
        self, delivery_id: str, event: Body, timestamp: int
    ) -> Mapping[str, str]:
        """Return the headers of an attempt. Raises SecretUnreadableError, SecretFormError."""
        context = SigningContext(
            event_id=event.public_id,
            event_type=event.type,
            delivery_id=delivery_id,
            timestamp=timestamp,
            body=event.bytes,
            secrets=self._secrets,
        )
        is_standard = self._endpoint.standard_headers or self._profile.standard_alone
        return {
            **self._custom_headers,
            "Content-Type": "application/json",
            **self._profile.delivery_headers(context),
            **(standard_headers(context) if is_standard else {}),
            **event.headers,
        }

    @cached_property
    def _custom_headers(self) -> dict[str, str]:
        headers = self._endpoint.custom_headers
        return {} if headers is None else dict(orjson.loads(headers.decrypt()))


def standard_headers(context: SigningContext) -> dict[str, str]:
    """Return the headers of Standard Webhooks: the event's id, one `v1,<base64>` per secret."""
    message = f"{context.event_id}.{context.timestamp}.".encode() + context.body
    digests = (
        hmac.digest(standard_key(secret), message, "sha256")
        for secret in context.secrets
    )
    return {
        "webhook-id": context.event_id,
        "webhook-timestamp": str(context.timestamp),
        "webhook-signature": " ".join(
            f"v1,{base64.b64encode(digest).decode()}" for digest in digests
        ),
    }
