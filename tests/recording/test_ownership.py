"""Subscriptions of other accounts, and ids that cannot be."""

from __future__ import annotations

import pytest

from tests.recording.conftest import OTHER_URL, error_of
from webhooks_core.models import Event

pytestmark = pytest.mark.django_db

WITH_ID = [
    ("PATCH", "", {"url": OTHER_URL, "events": []}),
    ("DELETE", "", None),
    ("POST", "/test", None),
    ("GET", "/deliveries", None),
]
IMPOSSIBLE_IDS = [
    "ep_" + "0" * 26,
    "ep_",
    "x",
    "%00",
    "ep_%00" + "0" * 25,
    "%ff",
    "%ED%A0%80",
    "ep_" + "Z" * 26,
    "1",
    "x" * 5000,
]


@pytest.mark.parametrize(("method", "tail", "body"), WITH_ID)
@pytest.mark.spec("recording", "another account's subscription is 404, never 403")
@pytest.mark.spec(
    "recording", "the account creates, lists, updates, deletes and tests subscriptions"
)
def test_another_account_s_subscription_is_not_there(api, stranger, method, tail, body):
    endpoint_id = api.create()["endpoint_id"]
    before = api.get("webhooks").json()
    path = f"webhooks/{endpoint_id}{tail}"
    theirs = stranger.send(method, path, body)
    absent = stranger.send(method, f"webhooks/ep_{'0' * 26}{tail}", body)
    error_of(theirs, 404, "not_found")
    assert theirs.content == absent.content
    assert api.get("webhooks").json() == before
    assert not Event.objects.exists()


@pytest.mark.parametrize("endpoint_id", IMPOSSIBLE_IDS)
@pytest.mark.parametrize(("method", "tail", "body"), WITH_ID)
@pytest.mark.spec("recording", "404 not_found: subscription id does not exist")
def test_an_id_that_does_not_exist_is_404(api, method, tail, body, endpoint_id):
    response = api.send(method, f"webhooks/{endpoint_id}{tail}", body)
    error_of(response, 404, "not_found")
