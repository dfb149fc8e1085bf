"""The account of an OAuth access token."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.utils import timezone
from oauth2_provider.models import AccessToken

from recording.accounts.token_lookup import TokenLookup
from recording.oauth import resources
from recording.oauth.clients import SCOPE
from recording.oauth.validator import ACCESS_PREFIX
from webhooks_core.models import bearer

ACCESS_TOKENS = TokenLookup(
    lambda digest: AccessToken.objects.filter(token_checksum=digest),
    ("expires", "scope", "resource"),
)


def authenticate(token: str) -> AbstractUser | None:
    """Return the user of a valid OAuth access token, or None; one query.

    Valid means: known, not expired, with the scope, for this resource (RFC 8707), and of a
    user who is still active.
    """
    if not bearer.is_well_formed(token, ACCESS_PREFIX):
        return None
    row = ACCESS_TOKENS.find(bearer.digest(token))
    if row is None:
        return None
    (expires, scope, audience), user = row
    is_alive = expires > timezone.now() and user.is_active
    is_for_us = not audience or any(
        resources.is_ours(resource, issuer=settings.BASE_URL) for resource in audience
    )
    return user if is_alive and SCOPE in scope.split() and is_for_us else None
