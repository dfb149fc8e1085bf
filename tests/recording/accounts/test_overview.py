"""The first page of an account."""

from __future__ import annotations

import pytest

from recording.accounts import personal_tokens
from tests.webhooks_core.admin.looking import queries_of
from tests.webhooks_core.pages.conftest import NOWHERE, person_named
from webhooks_core.models import Endpoint

PAGE = "/accounts"


@pytest.fixture
def ada(db):
    return person_named("ada")


def seen(person) -> str:
    return str(person.browser.get(PAGE).content.decode())


def test_a_new_account_sees_what_it_can_have(ada):
    page = seen(ada)
    assert "No endpoint receives your events yet." in page
    assert "No application acts for you." in page
    assert "None are valid." in page
    assert "Your password alone logs you in." in page
    assert "The latest:" in page


def test_it_names_what_is_wrong_and_what_is_valid(ada):
    ada.endpoint()
    Endpoint.objects.update(consecutive_failures=1)
    personal_tokens.create(user=ada.account, days=1)
    page = seen(ada)
    assert "Failing" in page
    assert "127.0.0.1:9/hook" in page
    assert "1 is valid." in page


def test_it_shows_nothing_of_others(ada):
    mallory = person_named("mallory")
    mallory.endpoint(f"{NOWHERE}/theirs")
    personal_tokens.create(user=mallory.account, days=1)
    page = seen(ada)
    assert "theirs" not in page
    assert "None are valid." in page


def test_a_login_leads_here_and_a_slash_does_too(ada, client):
    form = {"username": "ada", "password": "a-long-password"}
    assert client.post("/accounts/login", form)["Location"] == PAGE
    assert client.get("/accounts/")["Location"] == PAGE
    assert person_named("eve").browser.get(PAGE).status_code == 200


@pytest.mark.parametrize("count", [1, 5])
def test_the_number_of_queries_is_the_same_for_any_number_of_rows(ada, count):
    for _ in range(count):
        ada.endpoint()
        personal_tokens.create(user=ada.account, days=1)
    assert len(queries_of(ada.browser, PAGE)) == 7
