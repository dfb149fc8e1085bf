"""The account of an OAuth access token."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.utils import timezone
from oauth2_provider.models import AccessToken

from recording.oauth.metadata import SCOPE
from recording.oauth.validator import ACCESS_PREFIX
from webhooks_core.models import bearer


def authenticate(token: str) -> AbstractUser | None:
    """Return the user of a valid OAuth access token, or None; one query.

    Valid means: known, not expired, with the scope, and of a user who is still active. Each token
    is for this one resource (RFC 8707).
    """
    if not bearer.is_well_formed(token, ACCESS_PREFIX):
        return None
    live = AccessToken.objects.filter(expires__gt=timezone.now(), user__is_active=True)
    rows = live.select_related("user").filter(token_checksum=bearer.digest(token))
    row = rows.first()
    return row.user if row and SCOPE in row.scope.split() else None
