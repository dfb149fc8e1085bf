"""Who an access token speaks for."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils import timezone
from oauth2_provider.models import AccessToken

from recording.oauth import resources
from recording.oauth.clients import SCOPE
from recording.oauth.validator import ACCESS_PREFIX
from webhooks_core import tokens


def authenticate(token: str) -> Any:
    """Return the user of a valid OAuth access token, or None; one query.

    Valid means: known, not expired, with the scope, for this resource (RFC 8707), and of a
    user who is still active.
    """
    if not tokens.is_well_formed(token, ACCESS_PREFIX):
        return None
    found = (
        AccessToken.objects.filter(
            token_checksum=tokens.digest(token),
            expires__gt=timezone.now(),
            user__is_active=True,
        )
        .select_related("user")
        .only("scope", "resource", "user")
    )
    for access in found:
        if access.allow_scopes([SCOPE]) and _is_for_us(access.resource):
            return access.user
    return None


def _is_for_us(audience: list[str]) -> bool:
    return not audience or any(
        resources.is_ours(resource, issuer=settings.BASE_URL) for resource in audience
    )
