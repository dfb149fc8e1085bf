"""Requests at the same instant: one side wins, nobody sees a 5xx, nothing slips through."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest
from oauth2_provider.models import AccessToken, RefreshToken

from tests.factories import UserFactory
from tests.recording.accounts.browsers import logged_in
from tests.recording.oauth.flows import App
from tests.threads import together

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def app(transactional_db) -> App:
    return App.registered(logged_in(UserFactory.create(username="ada")))


def test_of_eight_exchanges_of_one_code_one_succeeds(app):
    for _ in range(3):
        code = app.code()
        responses = together(*[partial(app.exchange, code)] * 8)
        assert Counter(response.status_code for response in responses) == {
            200: 1,
            400: 7,
        }
        refused = [response for response in responses if response.status_code == 400]
        assert {response.json()["error"] for response in refused} == {"invalid_grant"}
        # The others were replays: what the winner got is revoked.
        assert not RefreshToken.objects.filter(revoked=None).exists()
        assert not AccessToken.objects.exists()


def test_of_eight_refreshes_of_one_token_five_succeed_and_survive(app):
    token = app.tokens()["refresh_token"]
    responses = together(*[partial(app.refresh, token)] * 8)
    assert Counter(response.status_code for response in responses) == {200: 5, 400: 3}
    fresh = [response.json() for response in responses if response.status_code == 200]
    assert len({pair["refresh_token"] for pair in fresh}) == 5
    assert RefreshToken.objects.values("token_family").distinct().count() == 1
    assert {app.refresh(pair["refresh_token"]).status_code for pair in fresh} == {200}


@pytest.mark.slow
def test_no_refresh_slips_past_a_revocation(app):
    for _ in range(8):
        token = app.tokens()["refresh_token"]
        refresh, revoke = partial(app.refresh, token), partial(app.revoke, token)
        responses = together(*[refresh] * 4, revoke, *[refresh] * 3)
        assert {response.status_code for response in responses} <= {200, 400}
        assert not RefreshToken.objects.filter(revoked=None).exists()
        assert not AccessToken.objects.exists()
