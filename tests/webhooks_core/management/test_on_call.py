"""The questions of somebody on call: one command each, on an instance with many endpoints."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests.factories import UserFactory
from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from webhooks_core.management.commands import webhooks_status
from webhooks_core.models import Delivery, Endpoint, EndpointChange, EndpointQueue

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


def run(command: str, *arguments: str) -> str:
    out = StringIO()
    call_command(command, *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def answer(command: str, *arguments: str) -> Any:
    return json.loads(run(command, *arguments, "--json"))


@pytest.fixture
def filled(use_profile):
    """A healthy endpoint, one that fails for good, and one that is disabled."""
    use_profile(disable_after=None)
    with receiver(200) as good, receiver(500) as bad:
        bad.answer = b'{"error": "out of ink"}'
        healthy = EndpointFactory.create(url=f"{good.url}/fine")
        failing = EndpointFactory.create(url=f"{bad.url}/hooks/acme", owner="acme")
        EndpointFactory.create(
            url=f"{bad.url}/off", owner="bob", status=Endpoint.Status.DISABLED
        )
        publish_events(2)
        for _ in range(2):
            publish_event(owner="acme")
        for _ in range(3):  # as often as the profile tries
            Delivery.objects.pending().update(next_attempt_at=timezone.now())
            EndpointQueue.objects.update(next_due_at=timezone.now())
            dispatch()
        yield healthy, failing, bad


def test_which_endpoint_fails_since_when_and_why(filled):
    _, failing, _ = filled
    failing.refresh_from_db()
    rows = answer("webhooks_status", "--failing")
    assert [row["state"] for row in rows] == ["failing", "disabled"]
    assert rows[0]["id"] == failing.public_id
    assert rows[0]["failing_since"][:19] == f"{failing.failing_since:%Y-%m-%dT%H:%M:%S}"
    assert rows[0]["attempts"] == 6
    assert rows[0]["error"] == 'HTTP 500 `{"error": "out of ink"}`'
    text = run("webhooks_status", "--failing")
    since = (
        f"Fails since {failing.failing_since:%H:%M:%S} UTC: 6 attempts, all HTTP 500"
    )
    assert since in text
    assert "/hooks/acme" in text
    assert "/fine" not in text


def test_everything_of_an_owner(filled):
    assert [row["owner"] for row in answer("webhooks_status", "--owner", "acme")] == [
        "acme"
    ]
    assert len(answer("webhooks_status")) == 3
    with pytest.raises(CommandError, match="'nobody' has no endpoint"):
        run("webhooks_status", "--owner", "nobody")


def test_an_account_is_found_by_its_name_too():
    user = UserFactory.create(username="ada", email="ada@example.com")
    EndpointFactory.create(profile="recording", owner=str(user.pk))
    for name in ("ada", "ADA@example.com", str(user.pk)):
        assert len(answer("webhooks_status", "--owner", name)) == 1


def test_all_that_failed_in_the_last_hour_is_sent_again_by_one_command(filled):
    _, failing, bad = filled
    bad.statuses = [200]
    assert answer("webhooks_replay", "--failed", "--dry-run")["errors"] == {
        "HTTP 500": 2
    }
    Delivery.objects.filter(pk=failing.delivery_set.first().pk).update(
        created_at=timezone.now() - timedelta(hours=2)
    )
    result = answer("webhooks_replay", "--failed", "--since", "1h")
    assert (result["found"], result["queued"]) == (1, 1)
    assert answer("webhooks_replay", "--failed", "--since", "1d")["queued"] == 1
    assert answer("webhooks_replay", "--failed")["found"] == 0


def test_of_an_owner_alone_and_not_to_what_is_disabled(filled):
    _, failing, _ = filled
    EndpointFactory.create(owner="carol")
    result = answer("webhooks_replay", "--failed", "--owner", "carol")
    assert result["found"] == 0
    Endpoint.objects.filter(pk=failing.pk).update(status=Endpoint.Status.DISABLED)
    err = StringIO()
    call_command("webhooks_replay", "--failed", stdout=StringIO(), stderr=err)
    assert f"left out: {failing.public_id} of acme" in err.getvalue()


def test_endpoints_are_paused_enabled_and_the_change_is_kept(filled):
    _, failing, _ = filled
    assert answer("webhooks_pause", "--owner", "acme") == {
        "paused": [failing.public_id]
    }
    assert answer("webhooks_pause", "--owner", "acme") == {"paused": []}
    Endpoint.objects.filter(pk=failing.pk).update(status=Endpoint.Status.DISABLED)
    enabled = answer("webhooks_enable", "--endpoint", failing.public_id)
    assert enabled == {"enabled": [failing.public_id]}
    failing.refresh_from_db()
    assert failing.is_receiving
    actors = EndpointChange.objects.filter(endpoint=failing, actor_kind="command")
    assert set(actors.values_list("action", flat=True)) == {
        *("paused", "enabled", "resumed")
    }
    for command in ("webhooks_pause", "webhooks_enable"):
        with pytest.raises(CommandError, match="there is no endpoint ep_none"):
            run(command, "--endpoint", "ep_none")


def test_an_empty_list_says_so_and_a_long_one_is_cut(monkeypatch):
    def note(*arguments: str) -> str:
        err = StringIO()
        call_command("webhooks_status", *arguments, stdout=StringIO(), stderr=err)
        return err.getvalue()

    assert note() == "There are no endpoints.\n"
    EndpointFactory.create_batch(3)
    assert note("--failing") == "No endpoint fails.\n"
    monkeypatch.setattr(webhooks_status, "AT_MOST", 2)
    assert "The first 2: name an owner" in note()


def test_the_number_of_queries_does_not_grow(django_assert_max_num_queries):
    for number in (2, 20):
        EndpointFactory.create_batch(number)
        publish_event()
        with django_assert_max_num_queries(3):
            run("webhooks_status")
