"""webhooks_resend: one delivery, or all that failed for an endpoint since a time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests.webhooks_core.factories import EndpointFactory, publish_events
from webhooks_core.models import Delivery, Endpoint

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain")]


@pytest.fixture
def failed() -> Endpoint:
    """An endpoint with three failed deliveries, of which one is three days old."""
    target = EndpointFactory.create()
    publish_events(3)
    Delivery.objects.all().fail(error="HTTP 500")
    first, old = Delivery.objects.earliest("pk"), timezone.now() - timedelta(days=3)
    Delivery.objects.filter(pk=first.pk).update(created_at=old)
    return target


@pytest.mark.parametrize(
    ("since", "count"), [((), 2), (("--since", "P7D"), 3), (("--since=PT0.1S",), 0)]
)
def test_what_failed_since_a_time_is_counted_and_then_queued(
    failed, capsys, since, count
):
    if count == 0:
        Delivery.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    options = ("--endpoint", failed.public_id, *since)
    call_command("webhooks_resend", *options, "--dry-run")
    assert capsys.readouterr().out == f"{count} would be sent again\n"
    assert Delivery.objects.count() == 3
    call_command("webhooks_resend", *options)
    assert capsys.readouterr().out == f"{count} queued\n"
    assert Delivery.objects.pending().count() == count


def test_one_delivery_is_sent_again(failed, capsys):
    call_command("webhooks_resend", delivery=Delivery.objects.earliest("pk").public_id)
    created = Delivery.objects.get(replay_number=1)
    assert capsys.readouterr().out == f"queued as {created.public_id}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--delivery", "dlv_none"], "there is no delivery dlv_none"),
        (["--endpoint", "ep_none"], "there is no endpoint ep_none"),
        (["--endpoint", "x", "--since", "yesterday"], "neither a time nor a duration"),
        (["--endpoint", "x", "--since", "P9999999999D"], "neither a time nor a dur"),
    ],
)
def test_what_cannot_be_resent_is_named(arguments, words):
    with pytest.raises(CommandError, match=words):
        call_command("webhooks_resend", *arguments)


def test_nothing_is_sent_to_a_disabled_endpoint(failed):
    Endpoint.objects.update(status=Endpoint.Status.DISABLED)
    with pytest.raises(CommandError, match="Nothing is sent"):
        call_command("webhooks_resend", "--endpoint", failed.public_id)
    assert Delivery.objects.count() == 3
