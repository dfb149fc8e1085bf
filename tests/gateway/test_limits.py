"""Limits of a tenant and a key: quota, throttles, the length of secrets."""

import pytest

from tests.gateway.client import PATH
from webhooks_core.models import Endpoint

pytestmark = pytest.mark.django_db

URL, OWN = "http://127.0.0.1:9/hook", "http://localhost:8000/"


@pytest.mark.spec("gateway", "The create throttle counts successful creates")
def test_the_create_throttle_counts_what_was_created(acme, settings):
    settings.GATEWAY_RATES = {"create": "2/hour", "test": "", "ingest": ""}
    acme.create()
    for refused in ({}, {"url": ""}, {"url": OWN}, {"url": URL, "secret": ""}, b"{"):
        assert acme.call("POST", PATH, refused).status_code == 400
    acme.create()
    assert acme.call("POST", PATH, {"url": URL}).status_code == 429
    assert Endpoint.objects.count() == 2


def test_a_longer_secret_is_asked_for_where_the_setting_says_so(acme, settings):
    settings.GATEWAY_MIN_SECRET_LENGTH = 16
    response = acme.call("POST", PATH, {"url": URL, "secret": "x" * 15})
    assert "16 to 256" in response.json()["detail"]
    acme.create(secret="x" * 16)
