"""The additional headers of an endpoint: named, sent, and never shown."""

from __future__ import annotations

import pytest

from tests.receiver import receiver
from tests.webhooks_core.admin.looking import SCRIPT, nothing_changes
from webhooks_core.models import Endpoint

pytestmark = pytest.mark.django_db(transaction=True)


def path_of(endpoint) -> str:
    return f"/endpoints/{endpoint.public_id}/headers"


def test_a_header_is_added_replaced_sent_and_removed_and_its_value_never_shown(ada):
    with receiver(204) as server:
        endpoint = ada.endpoint(server.url)
        path = path_of(endpoint)
        ada.post(path, name="X-Key", value="hush-1")
        page = ada.post(path, name="x-key", value="hush-2")
        assert "x-key: ••••••••" in page
        assert "X-Key" not in page
        ada.attempted(endpoint)
        assert server.requests[0].headers["x-key"] == "hush-2"
        for seen in (page, ada.page(path), ada.page("/changes")):
            assert "hush" not in seen
        assert "There are none." in ada.post(path, name="X-KEY", action="remove")
        ada.attempted(endpoint)
        assert "x-key" not in server.requests[1].headers


def test_the_standard_headers_are_switched_on_and_off(ada):
    with receiver(204) as server:
        endpoint = ada.endpoint(server.url)
        ada.post(path_of(endpoint), action="standard", wanted="on")
        ada.attempted(endpoint)
        ada.post(path_of(endpoint), action="standard")
        ada.attempted(endpoint)
    first, second = server.requests
    assert first.headers["webhook-signature"].startswith("v1,")
    assert "webhook-signature" not in second.headers


@pytest.mark.parametrize(
    ("form", "fault"),
    [
        ({}, "Enter the name of a header."),
        ({"name": "Host", "value": "x"}, "Host cannot be set."),
        ({"name": "X-Recording-Signature", "value": "x"}, "cannot be set."),
        ({"name": "a b", "value": "x"}, "is not a header name."),
        ({"name": SCRIPT, "value": "x"}, "is not a header name."),
        ({"name": "X-A", "value": "é"}, "is not plain text."),
        ({"name": "X-A", "value": "a\r\nX-B: 1"}, "is not plain text."),
        ({"name": "X-A", "value": "x" * 1025}, "1024"),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused(ada, form, fault):
    endpoint = ada.endpoint()
    with nothing_changes():
        page = ada.post(path_of(endpoint), 400, **form)
    assert fault in page
    assert SCRIPT not in page


def test_headers_that_cannot_be_decrypted_are_said_to_be_so(ada):
    endpoint = ada.endpoint()
    ada.post(path_of(endpoint), name="X-Key", value="hush")
    Endpoint.objects.filter(pk=endpoint.pk).update(custom_headers="encrypted")
    broken = {"custom_headers": Endpoint.objects.get().custom_headers}
    broken["custom_headers"].ciphertext = "nonsense"
    Endpoint.objects.filter(pk=endpoint.pk).update(**broken)
    response = ada.browser.get(f"/accounts/webhooks{path_of(endpoint)}", follow=True)
    assert "cannot be read here" in response.content.decode()
