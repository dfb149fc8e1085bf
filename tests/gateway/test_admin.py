"""What an operator sends to a gateway subscription from the admin."""

from __future__ import annotations

import orjson
import pytest

from webhooks_core.models import Delivery, Endpoint

pytestmark = pytest.mark.django_db


def test_an_operator_sends_the_test_event_with_all_of_its_fields(acme, admin_client):
    made = acme.create()
    endpoint = Endpoint.objects.get()
    answer = admin_client.post(
        f"/admin/webhooks_core/endpoint/{endpoint.pk}/send-test/"
    )
    assert answer.status_code == 302
    delivery = Delivery.objects.select_related("event").get()
    body = orjson.loads(bytes(delivery.event.body))
    assert body["type"] == "webhook.test"
    assert body["data"] == {"subscription_id": made["id"]}
    assert (body["tenant_id"], body["principal_id"]) == ("acme", "system")
    assert len(body["request_id"]) == len(body["trace_id"]) == 32
