"""Rows for the lists of the products, each with parents of its own: none may be read one by one."""

from __future__ import annotations

import uuid
from datetime import date

from django.contrib.auth.models import User
from django.utils import timezone
from oauth2_provider.models import AccessToken, RefreshToken

from gateway.chat.models import ModelEndpoint, ModelPrice, UsageDay, UsageRecord
from gateway.models import Document, GatewayKey, PolicyDecision
from recording.models import PersonalToken, Recording
from recording.oauth.models import Application, Grant
from tests.catalog.factories import BookFactory, CategoryFactory


def fill_products(number: int) -> None:
    """Make so many rows more for each list of the catalogue, recording and the gateway."""
    for _ in range(number):
        name = uuid.uuid4().hex
        BookFactory.create(category=CategoryFactory.create())
        _recording(User.objects.create(username=name), name)
        _gateway(name)
        _usage(name)


def _recording(user: User, name: str) -> None:
    now = timezone.now()
    Recording.objects.create(account=user, audio_id=name, document=b"{}", size=2)
    PersonalToken.objects.create(
        user=user, display_prefix="t", digest=name, expires_at=now
    )
    of = {
        "user": user,
        "application": Application.objects.create(name=name),
        "expires": now,
    }
    token = AccessToken.objects.create(token=name, **of)
    Grant.objects.create(code=name, redirect_uri="https://one.example/", **of)
    del of["expires"]
    RefreshToken.objects.create(token=name, access_token=token, **of)


def _gateway(name: str) -> None:
    owner = {"tenant": name, "principal": "ada"}
    GatewayKey.objects.create(display_prefix="k", digest=name, **owner)
    PolicyDecision.objects.create(public_id=name, allowed=False, **owner)
    Document.objects.create(
        public_id=name, checksum=name, size=0, characters=0, chunk_count=0, **owner
    )


def _usage(name: str) -> None:
    owner = {"tenant": name, "principal": "ada", "model": "echo"}
    UsageDay.objects.create(day=date(2026, 11, 20), **owner)
    UsageRecord.objects.create(
        created_at=timezone.now(), status=200, streamed=True, duration_ms=1, **owner
    )
    ModelPrice.objects.create(model=name, prompt_price=1, completion_price=1)
    ModelEndpoint.objects.create(name=name, upstream="echo").targets.create()
