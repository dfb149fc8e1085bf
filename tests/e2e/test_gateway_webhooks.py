"""The gateway's webhooks from end to end: real processes, a real receiver, stripe's verifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import requests

from tests.e2e.starting import Instance
from tests.gateway.client import INGEST, PATH, stripe_accepts
from tests.receiver import Receiver, receiver
from tests.running import until


@dataclass(frozen=True)
class Tenant:
    """A caller of an instance with a gateway key."""

    instance: Instance

    def call(self, method: str, path: str, body: Any = None, *, expect: int) -> Any:
        url = self.instance.url + path
        headers = {"Authorization": f"Bearer {self.instance.gateway_key}"}
        answer = requests.request(method, url, json=body, headers=headers, timeout=60)
        assert answer.status_code == expect, answer.text
        return answer.json() if answer.content else None

    def subscribe(self, it: Receiver, **fields: Any) -> Any:
        return self.call("POST", PATH, {"url": it.url} | fields, expect=201)

    def ingest(self, text: str) -> Any:
        return self.call("POST", INGEST, {"text": text}, expect=201)

    def newest(self, subscription: Any) -> Any:
        path = f"{PATH}/{subscription['id']}/deliveries"
        items = self.call("GET", path, expect=200)["items"]
        return items[0] if items else None

    def settled(self, subscription: Any, status: str) -> Any:
        """Wait until the newest delivery of a subscription has this status."""
        until(lambda: (self.newest(subscription) or {}).get("status") == status, status)
        return self.newest(subscription)


@pytest.fixture
def tenant(instance) -> Tenant:
    return Tenant(instance)


def test_a_document_arrives_on_the_third_attempt_under_one_id_and_fresh_signatures(
    tenant,
):
    with receiver(500, 503, 204) as it:
        made = tenant.subscribe(it, event_types=["ingest.completed"])
        shown = tenant.call("GET", f"{PATH}/{made['id']}", expect=200)
        assert made["secret"] not in str(shown)
        result = tenant.ingest("Ferries wait for the tide.")
        record = tenant.settled(made, "delivered")
    assert (record["attempts"], record["last_error"]) == (3, "HTTP 503")
    assert len({request.body for request in it.requests}) == 1
    assert {request.headers["X-Gateway-Delivery"] for request in it.requests} == {
        record["event_id"]
    }
    stamps = [int(request.headers["X-Gateway-Timestamp"]) for request in it.requests]
    assert stamps[2] > stamps[0]  # 1.5 s later, or more
    assert all(stripe_accepts(request, made["secret"]) for request in it.requests)
    assert result["document_id"] in it.requests[0].body.decode()
    tenant.call("DELETE", f"{PATH}/{made['id']}", expect=204)


def test_exhausted_attempts_end_as_failed(tenant):
    with receiver(500) as it:
        made = tenant.subscribe(it)
        tenant.ingest("Exhausted.")
        record = tenant.settled(made, "failed")
    assert (record["attempts"], len(it.requests)) == (3, 3)
    assert record["next_attempt_at"] is record["delivered_at"] is None
    tenant.call("DELETE", f"{PATH}/{made['id']}", expect=204)


def test_an_inactive_subscription_receives_nothing_until_it_is_active_again(tenant):
    with receiver(204) as it:
        made = tenant.subscribe(it)
        address = f"{PATH}/{made['id']}"
        tenant.call("PATCH", address, {"active": False}, expect=200)
        tenant.ingest("Unheard.")
        tenant.call("POST", f"{address}/test", expect=409)
        tenant.call("PATCH", address, {"active": True}, expect=200)
        heard = tenant.ingest("Heard.")
        tenant.settled(made, "delivered")
    [request] = it.requests
    assert heard["document_id"] in request.body.decode()
    tenant.call("DELETE", address, expect=204)


def test_during_a_rotation_both_secrets_verify(tenant):
    with receiver(204) as it:
        made = tenant.subscribe(it, secret="the first secret")
        fresh = tenant.instance.manage(
            "webhooks_rotate_secret", made["id"], "--overlap", "1"
        )
        tenant.call("POST", f"{PATH}/{made['id']}/test", expect=202)
        tenant.settled(made, "delivered")
    [request] = it.requests
    assert request.headers["X-Gateway-Signature"].count("v1=") == 2
    assert request.headers["X-Gateway-Event"] == "webhook.test"
    assert stripe_accepts(request, "the first secret")
    assert stripe_accepts(request, fresh)
    assert not stripe_accepts(request, "another")
    tenant.call("DELETE", f"{PATH}/{made['id']}", expect=204)
