"""Changes, tests and deletions of one subscription at the same moment."""

from __future__ import annotations

from collections import Counter
from copy import copy

import pytest
from django.test import Client

from tests.recording.conftest import OTHER_URL
from tests.threads import together
from webhooks_core.models import Delivery, Endpoint

pytestmark = pytest.mark.django_db(transaction=True)


def calls(api, endpoint_id):
    """Return calls of this subscription, each by a client of its own."""

    def call(method, tail="", body=None):
        def send():
            mine = copy(api)
            mine.client = Client()
            return method, mine.send(method, f"webhooks/{endpoint_id}{tail}", body)

        return send

    return call


def counted(responses):
    return Counter((method, response.status_code) for method, response in responses)


def test_of_eight_deletions_one_succeeds_and_frees_one_place(api):
    for _ in range(4):
        api.create()
    call = calls(api, api.create()["endpoint_id"])
    counts = counted(together(*[call("DELETE")] * 8))
    assert counts == {("DELETE", 200): 1, ("DELETE", 404): 7}
    api.create()
    assert api.post("webhooks", {"url": OTHER_URL}).status_code == 429


def test_eight_changes_at_once_all_succeed_and_one_of_them_stands(api):
    endpoint_id = api.create()["endpoint_id"]
    call = calls(api, endpoint_id)
    bodies = [{"url": f"{OTHER_URL}/{n}", "events": []} for n in range(8)]
    responses = together(*[call("PATCH", body=body) for body in bodies])
    assert counted(responses) == {("PATCH", 200): 8}
    [item] = api.get("webhooks").json()["items"]
    assert {"url": item["url"], "events": item["events"]} in bodies


def test_what_comes_after_a_deletion_finds_nothing_and_leaves_nothing(api):
    for _ in range(3):
        endpoint_id = api.create()["endpoint_id"]
        call = calls(api, endpoint_id)
        change, ping = call("PATCH", body={"events": []}), call("POST", "/test")
        counts = counted(together(*[change, ping] * 3, call("DELETE"), call("DELETE")))
        assert counts["DELETE", 200] == 1
        assert {status for _, status in counts} == {200, 404}
        assert not Endpoint.objects.of("recording", api.owner).exists()
        assert not Delivery.objects.filter(status=Delivery.Status.PENDING).exists()
