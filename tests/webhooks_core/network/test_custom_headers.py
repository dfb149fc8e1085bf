"""Custom headers, and the headers of Standard Webhooks."""

import pytest
from django.db import connection
from django.utils import timezone
from standardwebhooks import Webhook

from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core import endpoints, profiles
from webhooks_core.network.custom_headers import HeaderError, check
from webhooks_core.network.errors import Outcome
from webhooks_core.signing.schemes import SecretFormError

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


def test_custom_headers_travel_with_every_delivery_and_rest_encrypted():
    with receiver(204) as server:
        target = EndpointFactory.create(url=server.url)
        endpoints.set_custom_headers(target, {"Authorization": "Bearer abc"})
        publish_event()
        dispatch()
    [request] = server.requests
    assert request.headers["Authorization"] == "Bearer abc"
    assert request.headers["Content-Type"] == "application/json"
    with connection.cursor() as cursor:
        cursor.execute("SELECT custom_headers FROM webhooks_core_endpoint")
        [(stored,)] = cursor.fetchall()
    assert stored
    assert "abc" not in stored


REFUSED = """
    Host content-length Transfer-Encoding Connection Cookie Forwarded X-Forwarded-For
    X-Tenant-Id x-principal-id X-Recording-Signature X-Gateway-Event
    X-Plain-Anything webhook-id X_Tenant_Id x_forwarded_for traceparent Content-Type
"""


@pytest.mark.parametrize("name", [*REFUSED.split(), "", "a b", "Ä", "X\r\nY", "x" * 65])
def test_headers_that_are_not_the_owner_s_to_set_are_refused(name):
    prefixes = [profile.header_prefix for profile in profiles.registered()]
    with pytest.raises(HeaderError):
        check({name: "1"}, reserved=prefixes)


@pytest.mark.parametrize("value", ["a\r\nb", "\x00", "ü", "x" * 1025])
def test_values_that_could_inject_headers_are_refused(value):
    with pytest.raises(HeaderError):
        check({"X-Mine": value})


def test_too_many_and_doubled_headers_are_refused():
    with pytest.raises(HeaderError, match="at most 20"):
        check({f"X-{n}": "1" for n in range(21)})
    with pytest.raises(HeaderError, match="twice"):
        check({"X-Mine": "1", "x-mine": "2"})


def test_the_standardwebhooks_package_verifies_what_is_sent():
    with receiver(204) as server:
        created = endpoints.create(
            profile="plain", owner="alice", url=server.url, event_types=["thing.made"]
        )
        endpoints.set_standard_headers(created.endpoint, wanted=True)
        published = publish_event()
        dispatch()
    [request] = server.requests
    assert Webhook(created.secret).verify(request.body, request.headers)
    assert request.headers["webhook-id"] == published.public_id
    assert "X-Plain-Signature" in request.headers


@pytest.mark.parametrize("secret", ["plain text", "whsec_not base64!"])
def test_standard_headers_need_a_standard_secret(secret):
    target = EndpointFactory.create(secret=secret)
    with pytest.raises(ValueError, match=r"whsec_|base64"):
        endpoints.set_standard_headers(target, wanted=True)
    target.refresh_from_db()
    assert not target.standard_headers


def test_headers_that_cannot_be_read_fail_the_attempt_and_nothing_else(settings):
    from cryptography.fernet import Fernet

    with receiver(204) as server:
        target = EndpointFactory.create(url=server.url)
        endpoints.set_custom_headers(target, {"X-Mine": "1"})
        publish_event()
        settings.WEBHOOK_SECRET_KEYS = [Fernet.generate_key().decode()]
        dispatch()
    assert server.requests == []
    attempt = target.delivery_set.get().attempt_set.get()
    assert attempt.outcome == Outcome.UNSIGNED


@pytest.mark.parametrize("secret", ["s", "whsec_s"])
def test_nothing_is_sent_with_a_secret_that_cannot_sign_standard_headers(secret):
    with receiver(204) as server:
        target = EndpointFactory.create(url=server.url, standard_headers=True)
        target.endpointsecret_set.update(value=secret)
        publish_event()
        dispatch()
    assert server.requests == []
    attempt = target.delivery_set.get().attempt_set.get()
    assert attempt.outcome == Outcome.UNSIGNED


def test_a_rotation_keeps_the_form_that_standard_headers_need():
    target = EndpointFactory.create(standard_headers=True)
    before = target.secrets(now=timezone.now())
    with pytest.raises(SecretFormError):
        endpoints.rotate_secret(target, secret="of another form")
    assert target.secrets(now=timezone.now()) == before
