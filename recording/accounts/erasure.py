"""Erase an account: its recordings, webhooks, tokens and applications, and itself."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import AbstractUser
from django.contrib.contenttypes.models import ContentType
from django.db.models import Q, QuerySet
from oauth2_provider.models import get_access_token_model, get_refresh_token_model

from recording.accounts.owners import owner_id
from recording.models import EventSubscription, PersonalToken, Recording
from recording.webhooks import EVENTS_PROFILE, PROFILE
from webhooks_core.upkeep.removal import OwnerErasure


def account_erasure(account: AbstractUser) -> OwnerErasure:
    """Return what `manage.py erase --account` removes before the account itself."""
    pk = account.pk
    about = Q(content_type=ContentType.objects.get_for_model(account), object_id=pk)
    rows: dict[str, QuerySet[Any]] = {
        "recordings": Recording.objects.filter(account=pk),
        "personal tokens": PersonalToken.objects.filter(user=pk),
        "refresh tokens": get_refresh_token_model().objects.filter(user=pk),
        "access tokens": get_access_token_model().objects.filter(user=pk),
        "entries of the admin's log": LogEntry.objects.filter(Q(user=pk) | about),
    }
    return OwnerErasure(profile=PROFILE, owner=owner_id(account), rows=rows)


def subscription_erasure(account: AbstractUser) -> OwnerErasure:
    """Return what it removes first: the subscriptions of MCP clients to the account's events."""
    rows = {"event subscriptions": EventSubscription.objects.filter(account=account.pk)}
    return OwnerErasure(profile=EVENTS_PROFILE, owner=owner_id(account), rows=rows)


def erase(account: AbstractUser) -> None:
    """Remove an account and all that it has.

    It is deactivated first: from then on nothing is created for it or sent. Safe to repeat after
    an interruption.
    """
    account.is_active = False
    account.save(update_fields=["is_active"])
    subscription_erasure(account).erase()
    account_erasure(account).erase()
    account.delete()
