"""The commands over what people do about an endpoint: rotate its secret, resend its deliveries."""

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


@pytest.mark.parametrize(("since", "count"), [((), 2), (("--since", "P7D"), 3)])
def test_what_failed_since_a_time_is_counted_and_then_queued(
    failed, capsys, since, count
):
    call_command("webhooks_resend", failed.public_id, *since, "--dry-run")
    assert capsys.readouterr().out == f"{count} would be sent again\n"
    assert Delivery.objects.count() == 3
    call_command("webhooks_resend", failed.public_id, *since)
    assert capsys.readouterr().out == f"{count} queued\n"
    assert Delivery.objects.pending().count() == count


def test_one_delivery_is_sent_again(failed, capsys):
    call_command("webhooks_resend", Delivery.objects.earliest("pk").public_id)
    created = Delivery.objects.get(replay_number=1)
    assert capsys.readouterr().out == f"queued as {created.public_id}\n"


@pytest.mark.parametrize("overlap", [0, 24])
def test_a_rotation_prints_the_new_secret_and_keeps_the_old_one_for_the_overlap(
    failed, capsys, overlap
):
    [old] = failed.secrets(now=timezone.now())
    call_command("webhooks_rotate_secret", failed.public_id, f"--overlap={overlap}")
    new = capsys.readouterr().out.strip()
    secrets = failed.secrets(now=timezone.now())
    assert secrets == ([new, old] if overlap else [new])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["webhooks_resend", "dlv_none"], "no delivery or endpoint dlv_none"),
        (
            ["webhooks_resend", "x", "--since=yesterday"],
            "neither a time nor a duration",
        ),
        (["webhooks_resend", "x", "--since=P9999999999D"], "neither a time nor a dur"),
        (["webhooks_rotate_secret", "ep_none"], "no endpoint ep_none"),
        (["webhooks_rotate_secret", "x", "--overlap=-1"], "whole number from 0"),
        (["webhooks_rotate_secret", "x", "--overlap=169"], "whole number from 0"),
    ],
)
def test_what_cannot_be_done_is_named(arguments, words):
    with pytest.raises(CommandError, match=words):
        call_command(*arguments)


def test_a_refusal_of_the_use_case_is_the_command_s(failed):
    Endpoint.objects.update(status=Endpoint.Status.DISABLED, static_key="x")
    with pytest.raises(CommandError, match="Nothing is sent"):
        call_command("webhooks_resend", failed.public_id)
    with pytest.raises(CommandError, match="configuration declares"):
        call_command("webhooks_rotate_secret", failed.public_id)
    assert Delivery.objects.count() == 3
