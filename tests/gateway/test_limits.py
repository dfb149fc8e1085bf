"""Limits of a tenant and a key: quota, throttles, the length of secrets."""

import pytest

from gateway import keys
from tests.gateway.client import PATH, Api
from webhooks_core.models import Endpoint

pytestmark = pytest.mark.django_db

URL = "http://127.0.0.1:9/hook"


def test_throttles_count_per_key_and_say_when_to_come_back(settings):
    settings.GATEWAY_RATES = {"create": "2/hour", "test": "1/hour", "ingest": "1/hour"}
    first, second = (
        Api(key=keys.create(tenant="acme", principal="ada").text) for _ in range(2)
    )
    subscription = [first.create(), first.create()][0]
    for response in (
        first.call("POST", PATH, {"url": URL}),
        [first.test(subscription), first.test(subscription)][1],
        [first.ingest("one"), first.ingest("two")][1],
    ):
        assert (response.status_code, list(response.json())) == (429, ["detail"])
        assert 0 < int(response["Retry-After"]) <= 3601
    second.create()
    assert Endpoint.objects.count() == 3
    first.get()


@pytest.mark.spec("gateway", "The create throttle counts successful creates")
def test_the_create_throttle_counts_what_was_created(acme, settings):
    settings.GATEWAY_RATES = {"create": "2/hour", "test": "", "ingest": ""}
    acme.create()
    for refused in ({}, {"url": "ftp://x"}, {"url": URL, "secret": ""}, b"{"):
        assert acme.call("POST", PATH, refused).status_code == 400
    acme.create()
    assert acme.call("POST", PATH, {"url": URL}).status_code == 429
    assert Endpoint.objects.count() == 2


def test_a_longer_secret_is_asked_for_where_the_setting_says_so(acme, settings):
    settings.GATEWAY_MIN_SECRET_LENGTH = 16
    response = acme.call("POST", PATH, {"url": URL, "secret": "x" * 15})
    assert "16 to 256" in response.json()["detail"]
    acme.create(secret="x" * 16)
