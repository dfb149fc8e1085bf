"""Idempotency keys: a repeated request gets the first response, and nothing is done again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

import orjson
from django.db import IntegrityError, transaction
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from gateway.chat.core import json_numbers
from gateway.errors import UnprocessableError
from gateway.identity import Caller
from gateway.models import IdempotencyKey
from webhooks_core.secrets import MASK
from webhooks_core.web.errors import BadRequestError
from webhooks_core.web.openapi import IDEMPOTENCY

HEADER = IDEMPOTENCY
PARAMETER = OpenApiParameter(
    HEADER,
    location=OpenApiParameter.HEADER,
    description="Your name of the request, kept for a day: repeated, it gets the first response.",
)
REPLAYED = {"Idempotency-Replayed": "true"}
KEPT_FOR = timedelta(days=1)
_KEY = re.compile(r"[!-~]{1,255}")


class Outcome(NamedTuple):
    """The body of a response; `is_replayed` is True if an earlier request got it first."""

    body: dict[str, Any]
    is_replayed: bool = False


@dataclass(frozen=True, slots=True)
class RepeatableRequest:
    """A request with a key. The same key with another fingerprint is another request."""

    tenant: str
    key: str
    fingerprint: str

    def known(self) -> Outcome | None:
        """Return what the first request got. Raises 422 if that was another request."""
        row = IdempotencyKey.objects.filter(tenant=self.tenant, key=self.key).first()
        if row is None or row.created_at < timezone.now() - KEPT_FOR:
            return None
        if row.fingerprint != self.fingerprint:
            raise UnprocessableError(
                f"This {HEADER} was used for another request within the last day."
            )
        body = orjson.loads(row.response)
        if row.secret is not None:
            body["secret"] = row.secret.decrypt()
        return Outcome(body, is_replayed=True)

    def once(self, respond: Callable[[], Mapping[str, Any]]) -> Outcome:
        """Do what a request asks for, and keep its response; or return what is kept.

        Both happen in one transaction. A concurrent request with the same key waits for it.
        """
        if known := self.known():
            return known
        try:
            with transaction.atomic():
                row = self._claimed()
                body = dict(respond())
                _keep(row, body)
        except IntegrityError:
            if known := self.known():
                return known
            raise
        return Outcome(body)

    def _claimed(self) -> IdempotencyKey:
        names = {"tenant": self.tenant, "key": self.key}
        expired = timezone.now() - KEPT_FOR
        IdempotencyKey.objects.filter(**names, created_at__lt=expired).delete()
        return IdempotencyKey.objects.create(**names, fingerprint=self.fingerprint)


def repeatable(request: Request, caller: Caller, body: Any) -> RepeatableRequest | None:
    """Return a request as one with a key; None without one. Raises 400 for a malformed key."""
    key = request.headers.get(HEADER)
    if key is None:
        return None
    if not _KEY.fullmatch(key):
        raise BadRequestError(
            f"{HEADER} must have 1 to 255 printable ASCII characters without spaces."
        )
    content = json_numbers.dumps(body, sort_keys=True)
    address = f"{request.method} {request.path}\n".encode()
    return RepeatableRequest(
        caller.tenant, key, hashlib.sha256(address + content).hexdigest()
    )


def _keep(row: IdempotencyKey, body: dict[str, Any]) -> None:
    """Keep a response for a day; a secret within it is encrypted."""
    row.secret = body.get("secret")
    row.response = orjson.dumps(body | {"secret": MASK} if row.secret else body)
    row.save(update_fields=["response", "secret"])
