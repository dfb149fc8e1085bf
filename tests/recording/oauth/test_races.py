"""Requests at the same instant: one side wins, nobody sees a 5xx, nothing slips through."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import pytest
from django.db import connections
from django.db.models.deletion import Collector
from oauth2_provider.models import AccessToken, RefreshToken

from recording.accounts.locks import locked_account
from recording.oauth import validator
from recording.oauth.models import Application, Grant
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


@pytest.mark.parametrize("way", ["instance", "queryset"])
def test_a_refresh_beside_the_deletion_of_an_application_hinders_it_not(
    app, way, monkeypatch
):
    token, delete = app.tokens()["refresh_token"], Collector.delete
    rows = Application.objects.filter(client_id=app.client_id)
    application = rows.get()
    refreshes: list[Future[Any]] = []

    def refresh_first(collector: Collector) -> Any:
        if not refreshes:  # the rows of the application are collected
            refreshes.append(pool.submit(app.refresh, token))
            wait(refreshes, 0.5)  # it is done, or waits for the lock
        return delete(collector)

    monkeypatch.setattr(Collector, "delete", refresh_first)
    with ThreadPoolExecutor(1) as pool:
        (application if way == "instance" else rows).delete()
        assert refreshes[0].result(30).status_code in {400, 401}
        pool.submit(connections.close_all)
    assert not RefreshToken.objects.exists()


def test_a_consent_to_an_application_that_is_deleted_meanwhile_gives_no_code(
    app, monkeypatch
):
    def delete_first(user_id: int) -> Any:
        Application.objects.all().delete()
        return locked_account(user_id)

    monkeypatch.setattr(validator, "locked_account", delete_first)
    response = app.visitor.post(app.address(), {"allow": "yes"})
    assert response.status_code == 400
    assert not Grant.objects.exists()


@pytest.mark.slow
def test_no_refresh_slips_past_a_revocation(app):
    for _ in range(8):
        token = app.tokens()["refresh_token"]
        refresh, revoke = partial(app.refresh, token), partial(app.revoke, token)
        responses = together(*[refresh] * 4, revoke, *[refresh] * 3)
        assert {response.status_code for response in responses} <= {200, 400}
        assert not RefreshToken.objects.filter(revoked=None).exists()
        assert not AccessToken.objects.exists()
