"""The headers of an attempt: the product's own, the endpoint's own, and the signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

import orjson

from webhooks_core import profiles
from webhooks_core.encryption import EncryptedText
from webhooks_core.models import Endpoint, EndpointSecret
from webhooks_core.models.lookups import among
from webhooks_core.profiles import SigningContext
from webhooks_core.signing.signatures import standard_signature


class Body(NamedTuple):
    """What of an event is needed to send it."""

    public_id: str
    type: str
    bytes: bytes


def signers(endpoints: Sequence[Endpoint], now: datetime) -> dict[int, RequestSigner]:
    """Return who signs for each endpoint, by its primary key, with the secrets of now."""
    sealed: dict[int, list[Any]] = {it.pk: [] for it in endpoints}
    theirs = EndpointSecret.objects.filter(among(sealed, of="endpoint_id"))
    for pk, secret in theirs.current(now).values_list("endpoint_id", "value"):
        sealed[pk].append(secret)
    return {it.pk: RequestSigner(it, sealed[it.pk]) for it in endpoints}


class RequestSigner:
    """Makes the requests of one endpoint, as it is at this moment."""

    def __init__(self, endpoint: Endpoint, sealed: Sequence[EncryptedText]) -> None:
        self._endpoint = endpoint
        self._profile = profiles.get(endpoint.profile)
        self._sealed = sealed

    @cached_property
    def _secrets(self) -> list[str]:
        return [secret.decrypt() for secret in self._sealed]

    def headers(
        self, delivery_id: str, event: Body, timestamp: int
    ) -> Mapping[str, str]:
        """Return the headers of an attempt. Raises SecretUnreadableError."""
        sending = SigningContext(
            event_id=event.public_id,
            event_type=event.type,
            delivery_id=delivery_id,
            timestamp=timestamp,
            body=event.bytes,
            secrets=self._secrets,
        )
        return {
            **self._custom_headers,
            "Content-Type": "application/json",
            **self._profile.delivery_headers(sending),
            **(standard_headers(sending) if self._endpoint.standard_headers else {}),
        }

    @cached_property
    def _custom_headers(self) -> dict[str, str]:
        sealed = self._endpoint.custom_headers
        return {} if sealed is None else dict(orjson.loads(sealed.decrypt()))


def standard_headers(sending: SigningContext) -> dict[str, str]:
    """Return the headers of Standard Webhooks, whose message id is the event's."""
    signature = standard_signature(
        sending.secrets, sending.event_id, sending.timestamp, sending.body
    )
    return {
        "webhook-id": sending.event_id,
        "webhook-timestamp": str(sending.timestamp),
        "webhook-signature": signature,
    }
