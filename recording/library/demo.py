"""The demo data of a user: one recording and three sample endpoints."""

from __future__ import annotations

import orjson
from django.contrib.auth.models import AbstractUser

from recording.accounts.owners import owner_id
from recording.library import demo_webhooks, importing
from recording.models import Recording
from recording.webhooks import PROFILE, SUMMARY_COMPLETED_SAMPLE
from webhooks_core.models import Endpoint


def load(*, user: AbstractUser) -> None:
    """Create a recording and sample webhooks unless there are some."""
    if not Recording.objects.filter(account=user.pk).exists():
        importing.import_recording(
            account=user, raw=orjson.dumps(SUMMARY_COMPLETED_SAMPLE)
        )
    if not Endpoint.objects.of(PROFILE, owner_id(user)).exists():
        demo_webhooks.load(owner_id(user))
