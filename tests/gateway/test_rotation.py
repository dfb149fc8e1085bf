"""Rotating a signing secret: two signatures while the old one is still honoured."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests.gateway.making import drain, stripe_accepts
from tests.receiver import receiver
from webhooks_core.models import Endpoint

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.spec("gateway", "X-Gateway-Signature during a rotation: two v1=")
def test_a_rotated_secret_signs_beside_the_old_one_until_the_overlap_ends(acme):
    with receiver(204) as it:
        made = acme.create(it.url)
        new = rotate(made["id"], overlap=2)
        acme.test(made)
        drain()
        with time_machine.travel(timezone.now() + timedelta(hours=2, seconds=1)):
            acme.test(made)
            drain()
    both, after = it.requests
    assert both.headers["X-Gateway-Signature"].count("v1=") == 2
    assert stripe_accepts(both, new)
    assert stripe_accepts(both, made["secret"])
    assert after.headers["X-Gateway-Signature"].count("v1=") == 1
    assert stripe_accepts(after, new, tolerance=None)
    assert not stripe_accepts(after, made["secret"], tolerance=None)


def test_without_an_overlap_only_the_new_secret_signs(acme):
    with receiver(204) as it:
        made = acme.create(it.url)
        new = rotate(made["id"])
        acme.test(made)
        drain()
    assert it.requests[0].headers["X-Gateway-Signature"].count("v1=") == 1
    assert stripe_accepts(it.requests[0], new)


def rotate(subscription_id: str, **options) -> str:
    out = StringIO()
    call_command("webhooks_rotate_secret", subscription_id, stdout=out, **options)
    return out.getvalue().strip()


@pytest.mark.parametrize("overlap", [-1, 721, float("nan"), float("inf")])
def test_a_rotation_that_cannot_be_changes_nothing(acme, overlap):
    made = acme.create()
    with pytest.raises(CommandError, match="overlap"):
        rotate(made["id"], overlap=overlap)
    with pytest.raises(CommandError, match="no endpoint"):
        rotate("whsub_nonsense")
    endpoint = Endpoint.objects.get()
    assert endpoint.secrets(now=timezone.now()) == [made["secret"]]
    endpoint.static_key = "x"
    endpoint.save()
    with pytest.raises(CommandError, match="configuration"):
        rotate(made["id"])
