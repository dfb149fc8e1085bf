"""The account of an OAuth access token."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.utils import timezone
from oauth2_provider.models import AccessToken

from recording.accounts.token_lookup import TokenLookup
from recording.oauth.metadata import SCOPE
from recording.oauth.validator import ACCESS_PREFIX
from webhooks_core.models import bearer

ACCESS_TOKENS = TokenLookup(
    lambda digest: AccessToken.objects.filter(token_checksum=digest),
    ("expires", "scope"),
)


def authenticate(token: str) -> AbstractUser | None:
    """Return the user of a valid OAuth access token, or None; one query.

    Valid means: known, not expired, with the scope, and of a user who is still active. Each token
    is for this one resource (RFC 8707).
    """
    if not bearer.is_well_formed(token, ACCESS_PREFIX):
        return None
    row = ACCESS_TOKENS.find(bearer.digest(token))
    if row is None:
        return None
    (expires, scope), user = row
    is_valid = expires > timezone.now() and user.is_active and SCOPE in scope.split()
    return user if is_valid else None
