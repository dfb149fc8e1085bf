"""The signing secret: shown and rotated by its owner, after the password was given."""

from __future__ import annotations

import pytest

from tests.webhooks_core.admin.looking import nothing_changes
from tests.webhooks_core.pages.conftest import BASE
from tests.webhooks_core.pages.test_endpoints import confirmed, make_old
from webhooks_core.models import EndpointSecret

pytestmark = pytest.mark.django_db(transaction=True)


def secret_of(endpoint) -> str:
    return str(EndpointSecret.objects.get(endpoint=endpoint).value.decrypt())


def test_the_secret_is_shown_in_one_response_alone(ada):
    endpoint = ada.endpoint()
    address, secret = f"/endpoints/{endpoint.public_id}/secret", secret_of(endpoint)
    assert secret not in ada.page(address)
    response = ada.browser.post(f"{BASE}{address}", {"action": "show"})
    assert secret in response.content.decode()
    assert "no-store" in response["Cache-Control"]
    assert secret not in ada.page(address)
    assert secret not in ada.page(f"/endpoints/{endpoint.public_id}")


def test_a_rotation_ends_the_old_secret_at_once(ada):
    endpoint = ada.endpoint()
    old = secret_of(endpoint)
    page = ada.post(f"/endpoints/{endpoint.public_id}/secret", action="rotate")
    new = secret_of(endpoint)
    assert new != old
    assert new in page
    assert old not in page
    assert "It signs from now on." in page


@pytest.mark.parametrize("action", ["show", "rotate"])
def test_an_old_login_is_asked_for_the_password_first(ada, action):
    endpoint = ada.endpoint()
    address, secret = f"/endpoints/{endpoint.public_id}/secret", secret_of(endpoint)
    make_old(ada)
    with nothing_changes():
        page = ada.post(address, action=action)
        assert "Your login is older than ten minutes." in page
        assert secret not in page
        assert ada.browser.get(f"{BASE}{address}").status_code == 302
    assert "Signing secret" in confirmed(ada, page)
    assert secret in ada.post(address, action="show")


def test_a_wrong_password_shows_nothing(ada):
    endpoint = ada.endpoint()
    address = f"{BASE}/endpoints/{endpoint.public_id}/secret"
    make_old(ada)
    form = {"password": "wrong", "next": address}
    assert ada.browser.post("/accounts/confirm", form).status_code == 400
    assert ada.browser.get(address).status_code == 302


@pytest.mark.parametrize(
    "address", ["https://evil.example/", "//evil.example", "x\x00"]
)
def test_the_page_that_asks_leads_to_no_other_site(ada, address):
    form = {"password": "a-long-password", "next": address}
    response = ada.browser.post("/accounts/confirm", form)
    assert response["Location"].startswith("/accounts")
