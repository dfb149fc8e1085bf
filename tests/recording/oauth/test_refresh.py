"""Refresh tokens: rotation, the leeway after it, and the alarm (RFC 9700 section 4.14)."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone
from oauth2_provider.models import RefreshToken

from recording.oauth import access, prune
from recording.oauth.grants import MAX_SIBLINGS
from recording.oauth.models import Rotation
from tests.recording.oauth.flows import App


def test_the_reuse_of_a_refresh_token_kills_its_family_alone(app):
    mine, other = app.tokens(), app.tokens()
    newest = app.refresh(mine["refresh_token"]).json()
    with time_machine.travel(timezone.now() + timedelta(seconds=61)):
        assert app.refresh(mine["refresh_token"]).json()["error"] == "invalid_grant"
        assert app.refresh(newest["refresh_token"]).json()["error"] == "invalid_grant"
        assert access.authenticate(newest["access_token"]) is None
        assert access.authenticate(mine["access_token"]) is None
        assert app.refresh(other["refresh_token"]).status_code == 200


def test_a_retired_token_has_four_siblings_and_one_more_harms_nobody(app):
    first = app.tokens()["refresh_token"]
    responses = [app.refresh(first) for _ in range(8)]
    assert [response.status_code for response in responses] == [200] * 5 + [400] * 3
    assert {response.json()["error"] for response in responses[5:]} == {"invalid_grant"}
    pairs = [response.json() for response in responses[:5]]
    assert all(access.authenticate(pair["access_token"]) for pair in pairs)
    assert len({pair["refresh_token"] for pair in pairs}) == 5
    with time_machine.travel(timezone.now() + timedelta(seconds=61)):
        fresh = [app.refresh(pair["refresh_token"]) for pair in pairs]
    assert {response.status_code for response in fresh} == {200}
    assert RefreshToken.objects.values("token_family").distinct().count() == 1


def test_each_retired_token_has_siblings_of_its_own(app):
    token = app.tokens()["refresh_token"]
    for _ in range(3):
        responses = [app.refresh(token) for _ in range(MAX_SIBLINGS + 2)]
        assert [response.status_code for response in responses] == [200] * 5 + [400]
        token = responses[0].json()["refresh_token"]


def test_the_alarm_after_the_leeway_is_the_same_after_five_refreshes(app):
    first = app.tokens()["refresh_token"]
    pairs = [app.refresh(first).json() for _ in range(6)]
    with time_machine.travel(timezone.now() + timedelta(seconds=61)):
        assert app.refresh(first).json()["error"] == "invalid_grant"
        for pair in pairs[:5]:
            response = app.refresh(pair["refresh_token"])
            assert response.json()["error"] == "invalid_grant"


@pytest.mark.parametrize("owner_is_first", [True, False])
def test_what_a_thief_gets_within_the_leeway_lives_on(app, owner_is_first):
    """The documented danger: neither side ever uses a token that is retired for long."""
    stolen, start = app.tokens()["refresh_token"], timezone.now()
    pairs = [app.refresh(stolen).json() for _ in range(2)]
    owner, thief = pairs if owner_is_first else reversed(pairs)
    for day in (1, 60, 120):
        with time_machine.travel(start + timedelta(days=day)):
            owner, thief = (
                app.refresh(pair["refresh_token"]).json() for pair in (owner, thief)
            )
            assert access.authenticate(thief["access_token"])
    with time_machine.travel(start + timedelta(days=121)):
        app.revoke(owner["refresh_token"])
        assert app.refresh(thief["refresh_token"]).json()["error"] == "invalid_grant"


def test_the_count_of_siblings_goes_with_its_token(app):
    first, start = app.tokens()["refresh_token"], timezone.now()
    for _ in range(2):
        app.refresh(first)
    assert str(Rotation.objects.get()) == "siblings: 1"
    with time_machine.travel(start + timedelta(days=91)):
        prune.prune()
    assert not Rotation.objects.exists()


def test_the_leeway_counts_from_the_first_use(app):
    first, start = app.tokens()["refresh_token"], timezone.now()
    for seconds, status in ((0, 200), (50, 200), (70, 400)):
        with time_machine.travel(start + timedelta(seconds=seconds), tick=False):
            assert app.refresh(first).status_code == status


def test_the_leeway_does_not_survive_a_revocation(app):
    first = app.tokens()["refresh_token"]
    app.revoke(app.refresh(first).json()["refresh_token"])
    assert app.refresh(first).json()["error"] == "invalid_grant"


def test_the_leeway_can_be_switched_off(app, settings):
    settings.OAUTH_REFRESH_LEEWAY = 0
    first = app.tokens()["refresh_token"]
    assert app.refresh(first).status_code == 200
    assert app.refresh(first).json()["error"] == "invalid_grant"


def test_an_expired_sibling_does_not_kill_the_family(app):
    first, start = app.tokens()["refresh_token"], timezone.now()
    forgotten, used = (app.refresh(first).json()["refresh_token"] for _ in range(2))
    with time_machine.travel(start + timedelta(days=80)):
        used = app.refresh(used).json()["refresh_token"]
    with time_machine.travel(start + timedelta(days=91)):
        assert app.refresh(forgotten).json()["error"] == "invalid_grant"
        assert app.refresh(used).status_code == 200


def test_a_refresh_token_belongs_to_its_client(app, visitor):
    token = app.tokens()["refresh_token"]
    assert App.registered(visitor).refresh(token).json()["error"] == "invalid_grant"
    assert app.refresh(token).status_code == 200
