"""Who changed what of an endpoint, and when."""

from __future__ import annotations

import pytest

from tests.webhooks_core.admin.looking import SCRIPT
from tests.webhooks_core.pages.conftest import NOWHERE, TYPE
from webhooks_core import endpoints
from webhooks_core.models import EndpointChange
from webhooks_core.owners import changes

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_a_person_does_is_listed_by_name(ada):
    ada.post(url=NOWHERE, event_types=[TYPE])
    endpoint = ada.endpoint(f"{NOWHERE}/second")
    address = f"/endpoints/{endpoint.public_id}"
    ada.post(address, url=f"{NOWHERE}/third")
    ada.post(f"{address}/secret", action="show")
    ada.post(f"{address}/secret", action="rotate")
    delivery = ada.delivery(endpoints.update(endpoint, event_types=[TYPE]))
    ada.post(f"/deliveries/{delivery.public_id}/cancel")
    ada.post(f"/deliveries/{delivery.public_id}/resend")
    for page in (ada.page(address), ada.page("/changes")):
        for words in (
            "</bdi> looked at the secret",
            "</bdi> made a new secret",
            "</bdi> cancelled a delivery",
            "</bdi> resent a delivery",
            "→ http://127.0.0.1:9/hook/third",
        ):
            assert f"{words}" in page, words
    assert "ada</bdi> added the endpoint" in ada.page("/changes")


def test_an_operator_has_no_name(ada):
    endpoints.pause(ada.endpoint(), by=changes.operator("root@example.com"))
    page = ada.page("/changes")
    assert "An operator</bdi> paused it" in page
    assert "root@example.com" not in page


def test_values_of_headers_and_hostile_texts_are_not_shown(ada):
    endpoint = ada.endpoint(f"{NOWHERE}?{SCRIPT}")
    endpoints.set_custom_headers(endpoint, {"X-Key": "hush"}, by=ada.by)
    page = ada.page("/changes")
    assert "hush" not in page
    assert SCRIPT not in page


def test_the_changes_of_a_deleted_endpoint_stay_and_older_ones_follow(ada):
    endpoint = ada.endpoint()
    changes.record_all([endpoint.pk] * 60, EndpointChange.Action.PAUSED, by=ada.by)
    endpoints.delete(endpoint, by=ada.by)
    page = ada.page("/changes")
    assert "deleted it" in page
    assert "added the endpoint" not in page
    oldest = EndpointChange.objects.order_by("-pk")[49].pk
    assert f"?before={oldest}" in page
    assert "added the endpoint" in ada.page(f"/changes?before={oldest}")
    for before in ("x", "9" * 30, "%00", "-1"):
        assert "deleted it" in ada.page(f"/changes?before={before}")
