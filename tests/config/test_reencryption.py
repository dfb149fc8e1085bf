"""A change of keys: every encrypted column of every product can move to the new key."""

from io import StringIO

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP
from allauth.mfa.utils import decrypt
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.utils import timezone

from gateway.chat.models import ModelEndpoint
from tests.factories import UserFactory
from tests.gateway.chat.factories import ModelEndpointFactory
from tests.webhooks_core.factories import EndpointFactory
from webhooks_core.models import Endpoint, EndpointSecret, reencryption

pytestmark = pytest.mark.django_db

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()
HEADERS = '{"X-Ours": "1"}'


@pytest.fixture
def encrypted(plain, settings):
    """A value in each encrypted column, under the old key."""
    settings.WEBHOOK_SECRET_KEYS = [OLD]
    endpoint = EndpointFactory.create(custom_headers=HEADERS)
    ModelEndpointFactory.create()
    TOTP.activate(UserFactory.create(), "JBSWY3DP")
    settings.WEBHOOK_SECRET_KEYS = [NEW, OLD]
    return endpoint


def run_command() -> str:
    out = StringIO()
    call_command("webhooks_reencrypt", stdout=out)
    return out.getvalue()


def test_every_encrypted_column_is_known():
    assert set(reencryption.columns()) == {
        (Endpoint, "custom_headers"),
        (EndpointSecret, "value"),
        (ModelEndpoint, "api_key"),
    }


def test_the_old_key_can_be_removed_after_reencryption(encrypted, settings):
    secret = EndpointSecret.objects.get().value.decrypt()
    assert run_command() == "encrypted with the first key: 4\n"
    settings.WEBHOOK_SECRET_KEYS = [NEW]
    assert reencryption.unreadable() == 0
    assert EndpointSecret.objects.get().value.decrypt() == secret
    assert Endpoint.objects.get().custom_headers.decrypt() == HEADERS
    assert ModelEndpoint.objects.get().api_key.decrypt() == "sk-1"
    assert decrypt(Authenticator.objects.get().data["secret"]) == "JBSWY3DP"


def test_values_that_no_key_decrypts_are_counted_and_unchanged(encrypted, settings):
    settings.WEBHOOK_SECRET_KEYS = [NEW]
    with pytest.raises(CommandError, match="not decrypted: 4"):
        run_command()
    settings.WEBHOOK_SECRET_KEYS = [NEW, OLD]
    assert run_command() == "encrypted with the first key: 4\n"


def test_secrets_of_a_deleted_endpoint_do_not_count_as_unreadable(encrypted, settings):
    Endpoint.objects.update(deleted_at=timezone.now())
    settings.WEBHOOK_SECRET_KEYS = [NEW]
    assert reencryption.unreadable() == 2  # of the model and the app
