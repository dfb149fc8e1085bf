"""What people do about an endpoint besides resending: rotate and show its secret, enable and disable it.

REST, pages, MCP and the admin call these, and show the message of a refusal.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from webhooks_core import changes, endpoints
from webhooks_core.changes import Actor
from webhooks_core.errors import BadRequestError, ConflictError
from webhooks_core.models import Endpoint

LONGEST_OVERLAP = timedelta(days=7)
DEFAULT_OVERLAP = timedelta(days=1)


class DeclaredError(ConflictError):
    """Nothing was changed: the operator's configuration declares this endpoint."""


class NotDisabledError(ConflictError):
    """Nothing was changed: the endpoint is not disabled."""


class DisabledError(ConflictError):
    """Nothing was changed: the endpoint is disabled already."""


class NotReceivingError(ConflictError):
    """Nothing is sent: the endpoint is disabled, paused or deleted."""


class OverlapError(BadRequestError):
    """overlap_s must be 0: a delivery has one signature, by the newest secret."""


@dataclass(frozen=True, slots=True)
class Rotated:
    """A new secret, and until when the old one signs beside it; None if it ended at once."""

    secret: str
    old_secret_ends_at: datetime | None


def rotate(
    endpoint: Endpoint, *, overlap: timedelta | None = None, by: Actor
) -> Rotated:
    """Make a new secret; the old one signs too for `overlap`, by default what the product allows.

    Raises DeclaredError, and OverlapError where a request has one signature.
    """
    check_not_declared(endpoint)
    may_overlap = endpoints.may_overlap(endpoint)
    if overlap and not may_overlap:
        raise OverlapError
    if overlap is None:
        overlap = DEFAULT_OVERLAP if may_overlap else timedelta(0)
    secret = endpoints.rotate_secret(endpoint, overlap=overlap, by=by)
    return Rotated(secret, timezone.now() + overlap if overlap else None)


def enable(endpoint: Endpoint, *, by: Actor) -> Endpoint:
    """Send to a disabled endpoint again, what waits at once. Raises NotDisabledError."""
    if not endpoint.is_disabled or endpoint.deleted_at:
        raise NotDisabledError
    return endpoints.update(endpoint, status=Endpoint.Status.ACTIVE, by=by)


def disable(endpoint: Endpoint, *, by: Actor) -> Endpoint:
    """Send nothing until somebody enables the endpoint. Raises DisabledError."""
    if endpoint.is_disabled or endpoint.deleted_at:
        raise DisabledError
    return endpoints.update(endpoint, status=Endpoint.Status.DISABLED, by=by)


def show_secret(endpoint: Endpoint, *, by: Actor) -> str:
    """Return the current secret for a person, which is logged. Raises SecretUnreadableError."""
    secret = endpoint.secrets(now=timezone.now())[0]
    changes.record(endpoint.public_id, "secret shown", by=by)
    return secret


def check_not_declared(endpoint: Endpoint) -> None:
    """Raise DeclaredError for an endpoint that a configuration declares."""
    if endpoint.static_key is not None:
        raise DeclaredError
