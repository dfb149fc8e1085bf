"""When keys change: everything that is kept encrypted, in every product, goes to the new one."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.utils import timezone

from gateway.chat.models import ModelTarget
from tests.gateway.chat.factories import ModelEndpointFactory
from tests.webhooks_core.factories import EndpointFactory
from webhooks_core.models import Endpoint, EndpointSecret, reencryption

pytestmark = pytest.mark.django_db

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()
HEADERS = '{"X-Ours": "1"}'


@pytest.fixture
def kept(plain, settings):
    """Something in each sealed column, under the old key."""
    settings.WEBHOOK_SECRET_KEYS = [OLD]
    endpoint = EndpointFactory.create(custom_headers=HEADERS)
    ModelEndpointFactory.create()
    settings.WEBHOOK_SECRET_KEYS = [NEW, OLD]
    return endpoint


def reseal(*options: str) -> str:
    out = StringIO()
    call_command("webhooks_reencrypt", *options, stdout=out)
    return out.getvalue()


def test_every_sealed_column_is_known():
    assert set(reencryption.columns()) == {
        (Endpoint, "custom_headers"),
        (EndpointSecret, "value"),
        (ModelTarget, "api_key"),
    }


def test_the_old_key_may_go_when_all_is_under_the_new(kept, settings):
    secret = EndpointSecret.objects.get().value.decrypt()
    assert json.loads(reseal("--json")) == {"reencrypted": 3, "unreadable": 0}
    settings.WEBHOOK_SECRET_KEYS = [NEW]
    assert reencryption.unreadable() == 0
    assert EndpointSecret.objects.get().value.decrypt() == secret
    assert Endpoint.objects.get().custom_headers.decrypt() == HEADERS
    assert ModelTarget.objects.get().api_key.decrypt() == "sk-1"


def test_without_it_the_old_key_is_missed_in_every_column(kept, settings):
    settings.WEBHOOK_SECRET_KEYS = [NEW]
    assert reencryption.unreadable() == 3


def test_what_no_key_opens_is_told_and_left_as_it_is(kept, settings):
    settings.WEBHOOK_SECRET_KEYS = [NEW]
    with pytest.raises(CommandError, match="3 secrets cannot be decrypted"):
        reseal()
    settings.WEBHOOK_SECRET_KEYS = [NEW, OLD]
    assert reseal() == "3 secrets are encrypted with the first key\n"


def test_a_deleted_endpoints_secrets_are_missed_by_nobody(kept, settings):
    Endpoint.objects.update(deleted_at=timezone.now())
    settings.WEBHOOK_SECRET_KEYS = [NEW]
    assert reencryption.unreadable() == 1  # the model's key


def test_a_secret_that_changes_meanwhile_stays_as_it_becomes(kept, monkeypatch):
    rows = list(reencryption.rows())
    EndpointSecret.objects.update(value="whsec_newer")
    monkeypatch.setattr(reencryption, "rows", lambda: iter(rows))
    assert reencryption.reencrypt() == (2, 0)
    assert EndpointSecret.objects.get().value.decrypt() == "whsec_newer"
