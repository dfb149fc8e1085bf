"""Name the owners of recording's webhooks to operators, who else see a number alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from urllib.parse import urlencode

from django.contrib.auth import get_user_model
from django.db.models import Q
from django.urls import reverse

from recording.ids import row_id
from webhooks_core.profiles import OwnerInfo


def describe(owners: Collection[str]) -> Mapping[str, OwnerInfo]:
    """Return the users with these owner ids; absent ones are left out. One query."""
    rows = get_user_model().objects.filter(pk__in=set(map(row_id, owners)))
    return {
        str(pk): OwnerInfo(name, "auth.user", pk)
        for pk, name in rows.values_list("pk", get_user_model().USERNAME_FIELD)
    }


def find(name: str) -> Collection[str]:
    """Return the owner ids of users with this name or e-mail address."""
    username = {get_user_model().USERNAME_FIELD: name}
    rows = get_user_model().objects.filter(Q(**username) | Q(email__iexact=name))
    return [str(pk) for pk in rows.values_list("pk", flat=True)]


def lists(owner: str) -> Mapping[str, str]:
    """Return where the admin lists what else an account has."""
    names = [info.name for info in describe([owner]).values()]
    query = urlencode({"q": names[0] if names else owner})
    pages = {
        "Personal tokens": "recording_personaltoken",
        "Recordings": "recording_recording",
        "Security events": "recording_securityevent",
    }
    return {
        name: f"{reverse(f'admin:{page}_changelist')}?{query}"
        for name, page in pages.items()
    }
