"""Codes and refresh tokens are used once: rotation, its leeway, the alarm, requests at one instant."""

from collections import Counter
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.utils import timezone
from oauth2_provider.models import AccessToken, RefreshToken

from recording.accounts.owners import locked_account
from recording.oauth import grants
from recording.oauth.grants import MAX_SIBLINGS
from recording.oauth.models import Application, Grant
from tests.clock import travel
from tests.recording.oauth.flows import App, refusal
from tests.threads import together


def later(**time: float) -> Any:
    return travel(timezone.now() + timedelta(**time))


def test_the_reuse_of_a_refresh_token_kills_its_family_alone(app):
    mine, other = app.tokens(), app.tokens()
    newest = app.refresh(mine["refresh_token"]).json()
    with later(seconds=61):
        assert refusal(app.refresh(mine["refresh_token"])) == "invalid_grant"
        assert refusal(app.refresh(newest["refresh_token"])) == "invalid_grant"
        assert grants.authenticate(newest["access_token"]) is None
        assert grants.authenticate(mine["access_token"]) is None
        assert app.refresh(other["refresh_token"]).status_code == 200


def test_each_retired_token_has_four_siblings_and_one_more_harms_nobody(app):
    token = app.tokens()["refresh_token"]
    for _ in range(2):
        responses = [app.refresh(token) for _ in range(MAX_SIBLINGS + 3)]
        codes = [response.status_code for response in responses]
        assert codes == [200] * 5 + [400] * 2
        pairs = [response.json() for response in responses[:5]]
        assert all(grants.authenticate(pair["access_token"]) for pair in pairs)
        token = pairs[0]["refresh_token"]
    assert RefreshToken.objects.values("token_family").distinct().count() == 1
    with later(seconds=61):
        assert app.refresh(pairs[1]["refresh_token"]).status_code == 200


@pytest.mark.parametrize("owner_is_first", [True, False])
def test_what_a_thief_gets_within_the_leeway_lives_on(app, owner_is_first):
    """The documented danger: neither side ever uses a token that is retired for long."""
    stolen = app.tokens()["refresh_token"]
    pairs = [app.refresh(stolen).json() for _ in range(2)]
    owner, thief = pairs if owner_is_first else reversed(pairs)
    with later(days=60):
        owner, thief = (app.refresh(x["refresh_token"]).json() for x in (owner, thief))
        assert grants.authenticate(thief["access_token"])
        app.revoke(owner["refresh_token"])
        assert refusal(app.refresh(thief["refresh_token"])) == "invalid_grant"


def test_the_leeway_counts_from_the_first_use(app):
    first, start = app.tokens()["refresh_token"], timezone.now()
    for seconds, status in ((0, 200), (50, 200), (70, 400)):
        with travel(start + timedelta(seconds=seconds), tick=False):
            assert app.refresh(first).status_code == status


def test_the_leeway_does_not_survive_a_revocation(app):
    first = app.tokens()["refresh_token"]
    app.revoke(app.refresh(first).json()["refresh_token"])
    assert refusal(app.refresh(first)) == "invalid_grant"


def test_the_leeway_can_be_switched_off(app, settings):
    settings.OAUTH_REFRESH_LEEWAY = 0
    first = app.tokens()["refresh_token"]
    assert app.refresh(first).status_code == 200
    assert refusal(app.refresh(first)) == "invalid_grant"


def test_an_expired_sibling_does_not_kill_the_family(app):
    first = app.tokens()["refresh_token"]
    forgotten, used = (app.refresh(first).json()["refresh_token"] for _ in range(2))
    with later(days=80):
        used = app.refresh(used).json()["refresh_token"]
    with later(days=91):
        grants.prune()
        assert refusal(app.refresh(forgotten)) == "invalid_grant"
        assert app.refresh(used).status_code == 200


def test_a_refresh_token_belongs_to_its_client(app, visitor):
    token = app.tokens()["refresh_token"]
    assert refusal(App.registered(visitor).refresh(token)) == "invalid_grant"
    assert app.refresh(token).status_code == 200


def test_a_used_code_is_remembered_for_a_day(app):
    code = app.code()
    tokens = app.exchange(code).json()
    with later(hours=23):
        grants.prune()
        assert refusal(app.exchange(code)) == "invalid_grant"
        assert refusal(app.refresh(tokens["refresh_token"])) == "invalid_grant"
    with later(hours=25):
        grants.prune()
    assert not Grant.objects.exists()


# ── At one instant ──────────────────────────────────────────────────────────────────


@pytest.fixture
def racer(transactional_db, app: App) -> App:
    return app


def test_of_eight_exchanges_of_one_code_one_succeeds(racer):
    code = racer.code()
    responses = together(*[partial(racer.exchange, code)] * 8)
    assert Counter(each.status_code for each in responses) == {200: 1, 400: 7}
    # The others were replays: what the winner got is revoked.
    assert not RefreshToken.objects.filter(revoked=None).exists()
    assert not AccessToken.objects.exists()


def test_of_eight_refreshes_of_one_token_five_succeed_and_survive(racer):
    token = racer.tokens()["refresh_token"]
    responses = together(*[partial(racer.refresh, token)] * 8)
    assert Counter(each.status_code for each in responses) == {200: 5, 400: 3}
    fresh = {
        each.json()["refresh_token"] for each in responses if each.status_code < 400
    }
    assert len(fresh) == 5
    assert {racer.refresh(each).status_code for each in fresh} == {200}


@pytest.mark.slow
def test_no_refresh_slips_past_a_revocation(racer):
    for _ in range(4):
        token = racer.tokens()["refresh_token"]
        refresh, revoke = partial(racer.refresh, token), partial(racer.revoke, token)
        responses = together(*[refresh] * 4, revoke, *[refresh] * 3)
        assert {response.status_code for response in responses} <= {200, 400}
        assert not RefreshToken.objects.filter(revoked=None).exists()
        assert not AccessToken.objects.exists()


def test_a_consent_to_an_application_that_is_deleted_meanwhile_gives_no_code(
    racer, monkeypatch
):
    def delete_first(user_id: int) -> Any:
        Application.objects.all().delete()
        return locked_account(user_id)

    monkeypatch.setattr(grants, "locked_account", delete_first)
    response = racer.visitor.post(racer.address(), {"allow": "yes"})
    assert response.status_code == 400
    assert not Grant.objects.exists()
