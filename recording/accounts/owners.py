"""Name the owners of recording's webhooks to operators, who else see a number alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser

from recording.ids import row_id


def names_of(owners: Collection[str]) -> Mapping[str, str]:
    """Return the names of the users with these owner ids; absent ones are left out. One query."""
    rows = get_user_model().objects.filter(pk__in=set(map(row_id, owners)))
    names = rows.values_list("pk", get_user_model().USERNAME_FIELD)
    return {str(pk): name for pk, name in names}


def named(name: str) -> str:
    """Return the owner id of a user name. Raises LookupError."""
    user = get_user_model().objects.filter(username=name).first()
    if user is None:
        raise LookupError(f"there is no user {name!r}")
    return str(user.pk)


def owner_id(account: AbstractUser) -> str:
    """Return the name by which the engine knows an account."""
    return str(account.pk)
