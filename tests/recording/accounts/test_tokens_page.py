"""The page where an account makes, sees and revokes its personal tokens."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from recording.accounts import personal_tokens
from recording.models import PersonalToken
from tests.factories import UserFactory

PAGE = "/accounts/tokens"


def test_a_token_is_created_and_shown_once(visitor, account):
    response = visitor.post(PAGE, {"name": "build <b>server</b>", "days": "30"})
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    text = response.context["created"].text
    assert text in response.content.decode()
    assert "<b>server" not in response.content.decode()
    assert personal_tokens.authenticate(text) == account
    assert text not in visitor.get(PAGE).content.decode()
    row = PersonalToken.objects.get()
    assert timezone.now() + timedelta(days=29) < row.expires_at
    assert row.expires_at < timezone.now() + timedelta(days=31)


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"days": ""},
        {"days": "0"},
        {"days": "366"},
        {"days": "-1"},
        {"days": "x"},
        {"days": "9" * 400},
        {"days": "1.5"},
        {"days": "30", "name": "x" * 101},
        {"days": "30", "name": "a\x00b"},
        {"days": "30", "name": "a\u202eb"},
    ],
)
def test_an_invalid_form_creates_no_token_and_names_the_fault(visitor, form):
    response = visitor.post(PAGE, form)
    assert response.status_code == 400
    assert 'role="alert"' in response.content.decode()
    assert not PersonalToken.objects.exists()


def test_an_account_revokes_its_own_token(visitor, account):
    created = personal_tokens.create(user=account, days=1, name="mine")
    page = visitor.post(f"{PAGE}/revoke", {"token": created.token.pk}, follow=True)
    assert "The token was revoked." in page.content.decode()
    assert "Revoked" in page.content.decode()
    assert personal_tokens.authenticate(created.text) is None


def test_revoking_a_second_time_changes_nothing_without_a_message(visitor, account):
    created = personal_tokens.create(user=account, days=1)
    times = []
    for _ in range(2):
        page = visitor.post(f"{PAGE}/revoke", {"token": created.token.pk}, follow=True)
        times.append(PersonalToken.objects.get().revoked_at)
    assert "The token was revoked." not in page.content.decode()
    assert times[0] == times[1] is not None


def test_nobody_sees_or_revokes_the_tokens_of_another(visitor, account):
    theirs = personal_tokens.create(
        user=UserFactory.create(username="eve"), days=1, name="theirs"
    )
    assert "theirs" not in visitor.get(PAGE).content.decode()
    response = visitor.post(f"{PAGE}/revoke", {"token": theirs.token.pk})
    assert response.status_code == 404
    assert personal_tokens.authenticate(theirs.text)


@pytest.mark.parametrize("number", ["", "x", "-1", "0", "٣", "9" * 5000, "1\x00"])
def test_revoking_nothing_that_exists_is_not_found(visitor, number):
    assert visitor.post(f"{PAGE}/revoke", {"token": number}).status_code == 404


def test_the_page_separates_ended_tokens_from_live_ones(visitor, account):
    personal_tokens.create(user=account, days=1, name="short")
    with time_machine.travel(timezone.now() + timedelta(days=2)):
        page = visitor.get(PAGE).content.decode()
    assert "Expired, valid until" in page
    assert "Revoke<" not in page


def test_the_number_of_queries_does_not_grow_with_the_tokens(
    visitor, account, django_assert_num_queries
):
    for _ in range(9):
        personal_tokens.create(user=account, days=1)
    visitor.get(PAGE)  # stores once where the session is used
    with django_assert_num_queries(3):
        visitor.get(PAGE)
