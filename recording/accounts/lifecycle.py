"""End or suspend webhooks and tokens when their account is deleted or becomes inactive.

The only receivers of Django's model signals: Django's admin, code and commands change accounts
without calling this package. `QuerySet.update` sends no signal.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.db.models import CASCADE
from django.db.models.signals import (  # noqa: TID251 - see above
    post_save,
    pre_delete,
)
from django.utils import timezone

from recording import token_memory
from recording.accounts.owners import locked_account, owner_id
from recording.models import PersonalToken
from recording.oauth.models import Application
from recording.webhooks import EVENTS_PROFILE, PROFILE
from webhooks_core import endpoints
from webhooks_core.models import Endpoint
from webhooks_core.upkeep.removal import end_owner


def connect_signals() -> None:
    """Connect the receivers; called from AppConfig.ready."""
    pre_delete.connect(_on_delete, sender=get_user_model())
    post_save.connect(_on_save, sender=get_user_model())
    for model in (get_user_model(), Application, PersonalToken):
        pre_delete.connect(_on_removal, sender=model)


def _on_delete(*, instance: AbstractUser, **_: Any) -> None:
    # In the transaction of the deletion. The lock waits for calls that create something.
    list(get_user_model().objects.select_for_update().filter(pk=instance.pk))
    _delete_later_rows(instance)
    for profile in (EVENTS_PROFILE, PROFILE):
        end_owner(profile=profile, owner=owner_id(instance))


def _on_removal(**_: Any) -> None:
    token_memory.revoked()


def _delete_later_rows(account: AbstractUser) -> None:
    """Delete what was created for an account since Django collected the rows to delete.

    Such a row would refer to an account that is gone, and the deletion would fail at its end.
    """
    fields: Any = account._meta.get_fields(include_hidden=True)
    for relation in fields:
        if getattr(relation, "on_delete", None) is CASCADE:
            rows = relation.related_model.objects.filter
            rows(**{relation.field.name: account}).delete()


def _on_save(
    *,
    instance: AbstractUser,
    created: bool,
    update_fields: Collection[str] | None,
    raw: bool,
    **_: Any,
) -> None:
    if created or raw or (update_fields and "is_active" not in update_fields):
        return
    sync_activity(instance)


def sync_activity(account: AbstractUser) -> None:
    """Set an account's endpoints active or inactive with it; end the tokens of an inactive one."""
    from recording.oauth import grants  # with DRF, which few commands need

    own = Endpoint.objects.of(PROFILE, owner_id(account))
    # Read again: another change may have been committed since this one.
    with locked_account(account.pk) as current:
        if current is None:
            return
        for endpoint in own.exclude(active=current.is_active).order_by("pk"):
            endpoints.update(endpoint, active=current.is_active)
        if not current.is_active:
            PersonalToken.objects.filter(user=current).revoke(timezone.now())
            grants.disconnect(current)
