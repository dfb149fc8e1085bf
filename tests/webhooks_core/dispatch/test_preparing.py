"""What a profile sends in place of the stored body, what it refuses, and what ends at once."""

import pytest
from standardwebhooks import Webhook

from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core.models import Attempt, Delivery
from webhooks_core.profiles import Prepared
from webhooks_core.publishing import publish

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_a_profile_prepares_is_signed_and_sent(use_profile):
    def prepare(sendings):
        return {
            each.delivery: Prepared(each.body + b" ", {"X-For": str(each.endpoint)})
            for each in sendings
        }

    use_profile(prepare=prepare, standard_alone=True)
    with receiver(204) as server:
        endpoint = EndpointFactory.create(url=server.url)
        event = publish_event()
        assert dispatch() == 1
    [request] = server.requests
    assert request.body == bytes(event.body) + b" "
    assert request.headers["X-For"] == str(endpoint.pk)
    [secret] = endpoint.secrets(now=event.created_at)
    Webhook(secret).verify(
        request.body, {name.lower(): value for name, value in request.headers.items()}
    )
    assert "X-Plain-Signature" not in request.headers


def test_what_a_profile_refuses_fails_without_an_attempt(use_profile):
    use_profile(prepare=lambda sendings: {sendings[0].delivery: "not wanted"})
    with receiver(204) as server:
        EndpointFactory.create(url=server.url)
        publish_event()
        publish_event()
        dispatch()
    assert len(server.requests) == Attempt.objects.count() == 1
    refused, sent = Delivery.objects.order_by("pk")
    assert (refused.status, refused.attempts) == (Delivery.Status.FAILED, 0)
    assert refused.last_error == "not wanted"
    assert sent.status == Delivery.Status.DELIVERED


def test_a_profile_sees_what_is_published(use_profile):
    seen = []
    use_profile(published=lambda event, data: seen.append((event.pk, data)))
    event = publish(
        profile="plain", owner="alice", event_type="thing.made", data={"n": 1}
    )
    assert seen == [(event.pk, {"n": 1})]
