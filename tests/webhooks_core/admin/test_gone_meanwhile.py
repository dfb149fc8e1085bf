"""What an operator does with a row that went with its account a moment ago."""

from __future__ import annotations

from typing import Any

import pytest

from webhooks_core import endpoints, publishing
from webhooks_core.admin.endpoints import EndpointAdmin
from webhooks_core.models import Delivery, EndpointSecret
from webhooks_core.owners import replays
from webhooks_core.upkeep.removal import end_owner, remove_owner

OWNER: dict[str, Any] = {"profile": "recording", "owner": "1"}


def remove() -> None:
    end_owner(**OWNER)
    remove_owner(**OWNER)


@pytest.fixture
def endpoint():
    types = ["summary.completed"]
    return endpoints.create(
        **OWNER, url="http://127.0.0.1:9/", event_types=types
    ).endpoint


@pytest.mark.django_db(transaction=True)
def test_a_deleted_delivery_is_not_sent_again(endpoint):
    publishing.publish(**OWNER, event_type="summary.completed", data={})
    delivery = Delivery.objects.select_related("endpoint").get()
    remove()
    with pytest.raises(replays.NotSubscribedError):
        replays.replay(delivery)
    assert not Delivery.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "operation", ["pause", "set-trusted", "rotate-secret", "send-test"]
)
def test_the_admin_reports_that_an_endpoint_is_removed(
    endpoint, operation, admin_client, monkeypatch
):
    row = EndpointAdmin.row

    def late(self, request, pk):
        original = row(self, request, pk)
        remove()
        return original

    monkeypatch.setattr(EndpointAdmin, "row", late)
    admin_client.raise_request_exception = False
    page = f"/admin/webhooks_core/endpoint/{endpoint.pk}/{operation}/"
    form = {"hours": "0", "trusted": "on"}
    assert admin_client.post(page, form).status_code == 404
    assert not EndpointSecret.objects.exists()
