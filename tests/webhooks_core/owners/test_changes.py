"""Who did what to an endpoint."""

from __future__ import annotations

import pytest
from django.utils import timezone

from tests.webhooks_core.factories import EndpointFactory
from webhooks_core import endpoints
from webhooks_core.owners import changes

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


def test_each_operation_says_who_did_what_and_no_secret():
    ada, bob = changes.owner("ada"), changes.operator("bob")
    target = EndpointFactory.create(by=ada)
    first = target.secrets(now=timezone.now())[0]
    endpoints.update(target, by=ada, url="https://example.com/new")
    endpoints.pause(target, by=bob)
    endpoints.resume(target, by=bob)
    endpoints.set_custom_headers(target, {"X-Key": "hidden value"}, by=ada)
    second = endpoints.rotate_secret(target, by=ada)
    assert endpoints.show_secret(target, by=ada) == second
    assert endpoints.delete(target, by=bob)
    assert not endpoints.delete(target, by=bob)
    told = list(
        changes.of(target).order_by("pk").values_list("action", "actor", "details")
    )
    url = "http://127.0.0.1:9/"
    assert told == [
        ("created", "ada", {"url": url}),
        ("changed", "ada", {"url": [url, "https://example.com/new"]}),
        ("paused", "bob", {}),
        ("resumed", "bob", {}),
        ("changed", "ada", {"custom_headers": None}),
        ("rotated", "ada", {"overlap_h": 0.0}),
        ("shown", "ada", {}),
        ("deleted", "bob", {}),
    ]
    assert not any(text in str(told) for text in (first, second, "hidden value"))


def test_a_change_that_changes_nothing_is_none():
    target = EndpointFactory.create()
    before = changes.of(target).count()
    endpoints.update(target, url=target.url)
    assert changes.of(target).count() == before
