"""Rotating a signing secret: two signatures while the old one is still honoured."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.clock import travel
from tests.gateway.client import stripe_accepts
from tests.receiver import receiver
from tests.threads import at_once
from tests.webhooks_core.engine import dispatch
from webhooks_core import endpoints
from webhooks_core.models import Endpoint

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.spec("gateway", "X-Gateway-Signature during a rotation: two v1=")
@pytest.mark.spec("gateway", "A rotation without overlap ends every older secret")
def test_a_rotated_secret_signs_beside_the_old_one_until_the_overlap_ends(acme):
    with receiver(204) as subscriber:
        subscription = acme.create(subscriber.url)
        new = rotate(subscription["id"], overlap=2)
        acme.test(subscription)
        dispatch()
        with travel(timezone.now() + timedelta(hours=2, seconds=1)):
            acme.test(subscription)
            dispatch()
        last = rotate(subscription["id"])
        acme.test(subscription)
        dispatch()
    both, after, ended = subscriber.requests
    assert both.headers["X-Gateway-Signature"].count("v1=") == 2
    assert stripe_accepts(both, new)
    assert stripe_accepts(both, subscription["secret"])
    assert after.headers["X-Gateway-Signature"].count("v1=") == 1
    assert stripe_accepts(after, new, tolerance=None)
    assert not stripe_accepts(after, subscription["secret"], tolerance=None)
    # The first one still had an overlap, and so had the second.
    assert stripe_accepts(ended, last)
    assert not stripe_accepts(ended, new)
    assert not stripe_accepts(ended, subscription["secret"])


def test_the_oldest_of_too_many_secrets_end(acme):
    with receiver(204) as subscriber:
        subscription = acme.create(subscriber.url)
        secrets = [rotate(subscription["id"], overlap=168) for _ in range(12)]
        acme.test(subscription)
        dispatch()
    [request] = subscriber.requests
    assert request.headers["X-Gateway-Signature"].count("v1=") == 10
    accepted = [secret for secret in secrets if stripe_accepts(request, secret)]
    assert accepted == secrets[2:]


def test_of_rotations_at_once_one_secret_is_left(acme):
    subscription = acme.create()
    target = Endpoint.objects.get()
    secrets = at_once(4, lambda: endpoints.rotate_secret(target))
    assert len(set(secrets)) == 4
    [left] = target.secrets(now=timezone.now())
    assert left in secrets
    assert acme.get(f"/{subscription['id']}")["updated_at"] > subscription["updated_at"]


def rotate(subscription_id: str, *, overlap: int = 0) -> str:
    """Rotate with an overlap in hours."""
    target = Endpoint.objects.get(public_id=subscription_id)
    return endpoints.rotate_secret(target, overlap=timedelta(hours=overlap))
