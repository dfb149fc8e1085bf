"""Secrets whose key is lost: every surface says so, and a rotation mends it."""

import pytest
from cryptography.fernet import Fernet

from tests.webhooks_core.pages.conftest import Person, person_named
from webhooks_core import endpoints
from webhooks_core.models import Attempt, Delivery, Endpoint, EndpointSecret

pytestmark = pytest.mark.django_db(transaction=True)
ADMIN = "/admin/webhooks_core"


@pytest.fixture
def ada(settings) -> Person:
    """An account with a failed delivery; its secrets are of a key that is lost."""
    person = person_named("ada")
    endpoint = person.endpoint()
    endpoints.set_custom_headers(endpoint, {"X-Api-Key": "hush-hush"})
    settings.WEBHOOK_SECRET_KEYS = [Fernet.generate_key().decode()]
    person.attempted(endpoint)
    return person


def test_nothing_is_sent_unsigned(ada):
    attempt = Attempt.objects.get()
    assert attempt.error == "the signing secret cannot be read"


def test_the_owner_is_told_and_can_rotate(ada):
    page = f"/endpoints/{Endpoint.objects.get().public_id}/secret"
    told = ada.post(page, action="show", word="show")
    assert "The secret cannot be read here. Rotate it, or ask the operator." in told
    delivery = Delivery.objects.get()
    assert "could not be signed" in ada.page(f"/deliveries/{delivery.public_id}")
    shown = ada.post(page, action="rotate", word="rotate", overlap_h=0)
    newest = EndpointSecret.objects.latest("pk")
    assert newest.value.decrypt() in shown


def test_the_operator_is_told(ada, admin_client):
    address = f"{ADMIN}/endpoint/{Endpoint.objects.get().pk}/change/"
    page = admin_client.get(address).content.decode()
    assert "none of WEBHOOK_SECRET_KEYS decrypts them" in page
    assert "hush-hush" not in page
