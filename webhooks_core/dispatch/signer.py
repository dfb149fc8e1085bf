"""The headers of an attempt: the product's own, the endpoint's own, and the signatures."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

import orjson

from webhooks_core import profiles
from webhooks_core.dispatch.preparing import Body
from webhooks_core.models import Endpoint, EndpointSecret
from webhooks_core.models.lookups import among
from webhooks_core.profiles import SigningContext
from webhooks_core.secrets import EncryptedText
from webhooks_core.signing.schemes import standard_key


def signers(endpoints: Sequence[Endpoint], now: datetime) -> dict[int, RequestSigner]:
    """Return the signer of each endpoint, by its primary key, with the secrets of now."""
    secrets: dict[int, list[Any]] = {row.pk: [] for row in endpoints}
    current = EndpointSecret.objects.current(now).filter(
        among(secrets, of="endpoint_id")
    )
    for pk, secret in current.values_list("endpoint", "value"):
        secrets[pk].append(secret)
    return {row.pk: RequestSigner(row, secrets[row.pk]) for row in endpoints}


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
        return {
            **self._custom_headers,
            "Content-Type": "application/json",
            **self._profile.delivery_headers(context),
            **(standard_headers(context) if self._is_standard else {}),
            **event.headers,
        }

    @property
    def _is_standard(self) -> bool:
        return self._endpoint.standard_headers or self._profile.standard_alone

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
