"""Check a signature: what differs is named, and no secret is asked for or shown."""

from __future__ import annotations

import json

import pytest

from tests.receiver import receiver
from tests.webhooks_core.admin.looking import SCRIPT, nothing_changes
from tests.webhooks_core.pages.conftest import BASE
from webhooks_core import endpoints
from webhooks_core.models import Endpoint, EndpointSecret

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/check-signature"


@pytest.fixture
def received(ada):
    """A request as its receiver got it: the form, filled with it."""
    with receiver(204) as server:
        endpoint = ada.endpoint(server.url)
        ada.attempted(endpoint, text="two\nlines", title="Grüße")
    request = server.requests[0]
    headers = "\n".join(f"{name}: {value}" for name, value in request.headers.items())
    body = request.body.decode()
    return {"endpoint": endpoint.public_id, "headers": headers, "body": body}


def test_a_genuine_request_is_recognised(ada, received):
    page = ada.post(PATH, **received)
    assert "The signature is genuine" in page
    assert "The delivery that this request was" in page


def changed_body(form):
    return form | {"body": form["body"].replace("aud_1", "aud_2")}


def parsed_body(form):
    return form | {"body": json.dumps(json.loads(form["body"]), indent=2)}


def other_time(form):
    old = next(line for line in form["headers"].split("\n") if "-Timestamp" in line)
    return form | {"headers": form["headers"].replace(old, "X-Recording-Timestamp: 1")}


def no_signature(form):
    kept = [line for line in form["headers"].split("\n") if "-Signature" not in line]
    return form | {"headers": "\n".join(kept)}


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (changed_body, "Body:</b> has"),
        (parsed_body, "it was parsed and written again"),
        (other_time, "Timestamp:</b> is 1"),
        (no_signature, "Header:</b> X-"),
    ],
)
def test_the_part_that_differs_is_named(ada, received, change, part):
    page = ada.post(PATH, **change(received))
    assert "The signature does not fit" in page
    assert part in page
    assert EndpointSecret.objects.get().value.decrypt() not in page


def test_a_request_signed_with_an_older_secret_does_not_fit(ada, received):
    endpoints.rotate_secret(Endpoint.objects.get())
    assert "The signature does not fit" in ada.post(PATH, **received)


def test_an_unknown_event_is_said_to_be_unknown(ada, received):
    body = json.dumps(json.loads(received["body"]) | {"id": "evt_x"})
    headers = received["headers"].replace("dlv_", "dlx_")
    page = ada.post(PATH, **received | {"body": body, "headers": headers})
    assert "The event of this request is not known here" in page
    assert "webhooks_verify" not in page


@pytest.mark.parametrize(
    "change",
    [
        {"endpoint": f"ep_{'0' * 26}"},
        {"endpoint": "\x00"},
        {"headers": "no colon"},
        {"headers": ""},
        {"headers": "x: " + "y" * 40_000},
        {"body": ""},
        {"body": "\x00"},
    ],
)
def test_a_fault_of_the_form_is_named(ada, received, change):
    with nothing_changes():
        assert 'role="alert"' in ada.post(PATH, 400, **received | change)


def test_hostile_input_is_escaped_and_costs_little(ada, received):
    hostile = {"headers": f"X-Recording-Signature: {SCRIPT}", "body": SCRIPT}
    assert SCRIPT not in ada.post(PATH, **received | hostile)
    deep = received | {"body": "[" * 200_000}
    assert "does not fit" in ada.post(PATH, **deep)


def test_the_endpoint_of_another_account_is_no_choice(ada, mallory, received):
    theirs = mallory.endpoint()
    assert theirs.public_id not in ada.page(PATH)
    ada.post(PATH, 400, **received | {"endpoint": theirs.public_id})


def test_without_endpoints_there_is_nothing_to_check(ada):
    assert "there is nothing to check" in ada.page(PATH)
    assert ada.browser.post(f"{BASE}{PATH}", {}).status_code == 400
