"""How many subscriptions an account may have, and how fast it may make and test them."""

from __future__ import annotations

from copy import copy

import pytest
from django.test import Client

from recording.throttles import CreateThrottle
from tests.recording.conftest import URL, error_of
from tests.threads import at_once
from webhooks_core.models import Endpoint

pytestmark = pytest.mark.django_db


@pytest.mark.spec("recording", "429 too_many_requests: subscription quota exceeded")
@pytest.mark.spec("recording", "deleting frees the quota")
def test_the_sixth_subscription_is_refused_and_a_deletion_frees_its_place(api):
    ids = [api.create()["endpoint_id"] for _ in range(5)]
    message = error_of(api.post("webhooks", {"url": URL}), 429, "too_many_requests")
    assert "5" in message
    assert len(api.get("webhooks").json()["items"]) == 5
    assert api.delete(f"webhooks/{ids[2]}").json() == {"ok": True}
    assert api.create()["endpoint_id"] not in ids


@pytest.mark.spec("recording", "disabled endpoints count until deleted")
def test_disabled_subscriptions_count_towards_the_quota(api):
    for _ in range(5):
        api.create()
    Endpoint.objects.update(status=Endpoint.Status.DISABLED)
    error_of(api.post("webhooks", {"url": URL}), 429, "too_many_requests")


def test_the_quota_is_each_account_s_own(api, stranger):
    for _ in range(5):
        api.create()
    stranger.create()


def test_a_full_quota_is_reported_after_the_faults_of_the_fields(api):
    for _ in range(5):
        api.create()
    error_of(api.post("webhooks", {"url": "nonsense"}), 400, "bad_request")


@pytest.mark.django_db(transaction=True)
@pytest.mark.spec("recording", "Subscriptions per account: 5")
@pytest.mark.spec("recording", "create has no idempotency key")
def test_of_many_creations_at_once_only_five_succeed(api):
    def create():
        mine = copy(api)
        mine.client = Client()
        return mine.post("webhooks", {"url": URL}).status_code

    statuses = at_once(12, create)
    assert sorted(statuses) == [201] * 5 + [429] * 7
    assert Endpoint.objects.filter(owner=api.owner).count() == 5


@pytest.mark.parametrize(("scope", "tail"), [("create", ""), ("test", "/{}/test")])
@pytest.mark.spec("recording", "in production limits on create and /test by setting")
def test_a_rate_that_is_set_holds_for_each_account(
    api, stranger, settings, scope, tail
):
    memory = "django.core.cache.backends.locmem.LocMemCache"
    settings.CACHES = {"default": {"BACKEND": memory, "LOCATION": f"rates of {scope}"}}
    mine, theirs = api.create()["endpoint_id"], stranger.create()["endpoint_id"]
    settings.RECORDING_RATES = {"create": "", "test": ""} | {scope: "1/hour"}
    path = f"webhooks{tail}"
    assert api.post(path.format(mine), {"url": URL}).status_code < 300
    response = api.post(path.format(mine), {"url": URL})
    message = error_of(response, 429, "too_many_requests")
    subject = {"create": "new subscriptions", "test": "test events"}[scope]
    assert message.startswith(f"Too many {subject}: an account may ")
    seconds = response["Retry-After"]
    assert message.endswith(f" 1 per hour; try again in {seconds} s.")
    assert 0 < int(response["Retry-After"]) <= 3601
    assert stranger.post(path.format(theirs), {"url": URL}).status_code < 300
    assert api.get("webhooks").status_code == 200


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        ("60/hour", "60 per hour"),
        ("2/s", "2 per second"),
        ("5/min", "5 per minute"),
        ("9/day", "9 per day"),
    ],
)
def test_a_rate_is_written_in_words(settings, rate, words):
    settings.RECORDING_RATES = {"create": rate}
    assert CreateThrottle().limit.endswith(f"an account may create {words}")
