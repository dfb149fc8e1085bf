"""Idempotency keys of publishing: a repeated request gets the first response, and nothing else."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson
from django.db import IntegrityError, transaction
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter

from gateway import json
from gateway.errors import UnprocessableError
from gateway.models import IdempotencyKey
from webhooks_core.web.errors import BadRequestError
from webhooks_core.web.openapi import IDEMPOTENCY

PARAMETER = OpenApiParameter(
    IDEMPOTENCY,
    location=OpenApiParameter.HEADER,
    description="Your name of the request, kept for a day: repeated, it gets the first response.",
)
KEPT_FOR = timedelta(days=1)
_KEY = re.compile(r"[!-~]{1,255}")


@dataclass(frozen=True, slots=True)
class RepeatableRequest:
    """A request with a key. The same key with another fingerprint is another request."""

    tenant: str
    key: str
    fingerprint: str

    @classmethod
    def of(cls, tenant: str, key: str, body: Any) -> RepeatableRequest:
        """Return the request of a tenant. Raises 400 for a malformed key."""
        if not _KEY.fullmatch(key):
            raise BadRequestError(
                f"{IDEMPOTENCY} must have 1 to 255 printable ASCII characters without spaces."
            )
        content = json.dumps(body, sort_keys=True)
        return cls(tenant, key, hashlib.sha256(content).hexdigest())

    def once(self, respond: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Do what a request asks for, and keep its response; or return what is kept.

        Both happen in one transaction. A concurrent request with the same key waits for it.
        """
        if known := self._known():
            return known
        try:
            with transaction.atomic():
                row = self._claimed()
                body = respond()
                row.response = orjson.dumps(body)
                row.save(update_fields=["response"])
        except IntegrityError:
            if known := self._known():
                return known
            raise
        return body

    def _known(self) -> dict[str, Any] | None:
        """Return what the first request got. Raises 422 if that was another request."""
        row = IdempotencyKey.objects.filter(tenant=self.tenant, key=self.key).first()
        if row is None or row.created_at < timezone.now() - KEPT_FOR:
            return None
        if row.fingerprint != self.fingerprint:
            raise UnprocessableError(
                f"This {IDEMPOTENCY} was used for another request within the last day."
            )
        return {**orjson.loads(row.response), "duplicate": True}

    def _claimed(self) -> IdempotencyKey:
        names = {"tenant": self.tenant, "key": self.key}
        expired = timezone.now() - KEPT_FOR
        IdempotencyKey.objects.filter(**names, created_at__lt=expired).delete()
        return IdempotencyKey.objects.create(**names, fingerprint=self.fingerprint)
