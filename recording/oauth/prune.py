"""Delete expired codes and tokens, and unused applications."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Q
from django.utils import timezone
from oauth2_provider.models import AccessToken, RefreshToken

from recording.oauth.clients import UNUSED_AFTER
from recording.oauth.models import (
    REFRESH_LIFETIME,
    Application,
    Grant,
    Rotation,
)

BATCH = 1000
# A used code stays for a day, so that its replay is still detected.
REPLAY_DETECTION = timedelta(days=1)
MAX_LEEWAY = timedelta(days=1)  # of OAUTH_REFRESH_LEEWAY


def prune() -> dict[str, int]:
    """Delete in batches, so that no lock is held for long; return the counts.

    Retired refresh tokens stay until they would have expired anyway: their use reveals a theft.
    The last access token of a connection stays with it: the toolkit's command `cleartokens`
    deletes refresh tokens without one.
    """
    now = timezone.now()
    idle_since = now - timedelta(days=settings.OAUTH_UNUSED_CLIENT_DAYS)
    return {
        "codes": _delete(Grant.objects.filter(expires__lt=now - REPLAY_DETECTION)),
        "rotations": _delete(Rotation.objects.filter(created__lt=now - MAX_LEEWAY)),
        "refresh tokens": _delete(
            RefreshToken.objects.filter(created__lt=now - REFRESH_LIFETIME)
        ),
        "access tokens": _delete(
            AccessToken.objects.filter(
                Q(refresh_token=None) | Q(refresh_token__revoked__isnull=False),
                expires__lt=now,
            )
        ),
        "applications": _delete(Application.objects.idle(since=idle_since))
        + _delete(Application.objects.unused_documents(expired=now - UNUSED_AFTER)),
    }


def _delete(rows: Any) -> int:
    total = 0
    while keys := list(rows.values_list("pk", flat=True)[:BATCH]):
        rows.filter(pk__in=keys).delete()  # but for those that were used meanwhile
        total += len(keys)
    return total
