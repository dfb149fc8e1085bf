"""Who the owners of recording's webhooks are: for operators, who see more than a number."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.contrib.auth import get_user_model

from webhooks_core.profiles import OwnerInfo


def describe(owners: Collection[str]) -> Mapping[str, OwnerInfo]:
    """Return the users of these owner ids, those that are gone left out. One query."""
    users = get_user_model()._default_manager  # noqa: SLF001 - Django's own name for it
    keys = [
        int(it) for it in owners if it.isdecimal() and len(it) < 19
    ]  # fit the column
    rows = users.filter(pk__in=keys)
    return {
        str(pk): OwnerInfo(name, "auth.user", pk)
        for pk, name in rows.values_list("pk", get_user_model().USERNAME_FIELD)
    }
