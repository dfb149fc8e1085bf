"""Name the owners of recording's webhooks to operators, who else see a number alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.contrib.auth import get_user_model
from django.db.models import Q

from recording.ids import row_id
from webhooks_core.profiles import OwnerInfo


def describe(owners: Collection[str]) -> Mapping[str, OwnerInfo]:
    """Return the users with these owner ids; absent ones are left out. One query."""
    users = get_user_model()._default_manager  # noqa: SLF001 - Django's own name for it
    rows = users.filter(pk__in=set(map(row_id, owners)))
    return {
        str(pk): OwnerInfo(name, "auth.user", pk)
        for pk, name in rows.values_list("pk", get_user_model().USERNAME_FIELD)
    }


def find(name: str) -> Collection[str]:
    """Return the owner ids of users with this name or e-mail address."""
    users = get_user_model()._default_manager  # noqa: SLF001 - Django's own name for it
    username = {get_user_model().USERNAME_FIELD: name}
    rows = users.filter(Q(**username) | Q(email__iexact=name))
    return [str(pk) for pk in rows.values_list("pk", flat=True)]
