"""The demo data of a user: one recording, one personal token, three sample endpoints."""

from __future__ import annotations

import orjson
from django.contrib.auth.models import AbstractUser

from recording.accounts import personal_tokens
from recording.library import demo_webhooks, importing
from recording.models import PersonalToken, Recording
from recording.subscriptions import owner_id
from recording.webhooks import PROFILE, SUMMARY_COMPLETED_SAMPLE
from webhooks_core.models import Endpoint

TOKEN_DAYS = 30


def load(*, user: AbstractUser) -> str | None:
    """Create a recording, sample webhooks and a token unless there are some; return the token's text.

    None if the user has a token already: its text is not stored.
    """
    if not Recording.objects.filter(account=user.pk).exists():
        importing.import_recording(
            account=user, raw=orjson.dumps(SUMMARY_COMPLETED_SAMPLE)
        )
    if not Endpoint.objects.of(PROFILE, owner_id(user)).exists():
        demo_webhooks.load(owner_id(user))
    if PersonalToken.objects.filter(user=user.pk).exists():
        return None
    return personal_tokens.create(user=user, days=TOKEN_DAYS, name="demo").text
