"""Owners by the names that people know: a tenant, or the user name of an account."""

from __future__ import annotations

from django.db.models import Q

from webhooks_core import profiles


def named(name: str) -> Q:
    """Return the condition on rows with a profile and an owner: those of this name or id."""
    condition = Q(owner=name)
    for profile in profiles.registered():
        if profile.find_owners is not None and (ids := profile.find_owners(name)):
            condition |= Q(profile=profile.name, owner__in=ids)
    return condition
