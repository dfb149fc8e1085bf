"""The gateway's webhooks from end to end: real processes, a real receiver, stripe's verifier."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.gateway.client import INGEST, PATH, stripe_accepts
from tests.receiver import Receiver, receiver
from tests.running import environment, free_port, running, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


@dataclass(frozen=True)
class Instance:
    url: str
    data: Path
    headers: dict[str, str] = field(default_factory=dict)

    def manage(self, *arguments: str) -> str:
        variables = environment(DATABASE_URL=f"sqlite:///{self.data}")
        with running("manage.py", *arguments, environment=variables) as it:
            assert it.status() == 0, it.output
            return it.lines[-1].strip()

    def call(self, method: str, path: str, body: Any = None, *, expect: int) -> Any:
        answer = requests.request(
            method, self.url + path, json=body, headers=self.headers, timeout=30
        )
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


@pytest.fixture(scope="module")
def instance(tmp_path_factory, migrated_file) -> Iterator[Instance]:
    """An instance as `make run` starts it, called with a gateway key."""
    data, port = tmp_path_factory.mktemp("gateway") / "e2e.sqlite3", free_port()
    shutil.copy(migrated_file, data)
    url = f"http://127.0.0.1:{port}"
    variables = environment(DATABASE_URL=f"sqlite:///{data}", BASE_URL=url)
    arguments = ("manage.py", "up", "--port", str(port), "--no-demo")
    with running(*arguments, environment=variables) as process:
        process.wait_for("Signpost is ready")
        made = Instance(url, data)
        key = made.manage(
            "create_gateway_key", "--tenant", "acme", "--principal", "ada"
        )
        made.headers["Authorization"] = f"Bearer {key}"
        yield made


def test_a_document_arrives_on_the_third_attempt_under_one_id_and_fresh_signatures(
    instance,
):
    with receiver(500, 503, 204) as it:
        made = instance.subscribe(it, event_types=["ingest.completed"])
        shown = instance.call("GET", f"{PATH}/{made['id']}", expect=200)
        assert made["secret"] not in str(shown)
        result = instance.ingest("Ships give way to ferries.")
        record = instance.settled(made, "delivered")
    assert (record["attempts"], record["last_error"]) == (3, "HTTP 503")
    assert len({request.body for request in it.requests}) == 1
    assert {request.headers["X-Gateway-Delivery"] for request in it.requests} == {
        record["event_id"]
    }
    stamps = [int(request.headers["X-Gateway-Timestamp"]) for request in it.requests]
    assert stamps[2] > stamps[0]  # 1.5 s later, or more
    assert all(stripe_accepts(request, made["secret"]) for request in it.requests)
    assert result["document_id"] in it.requests[0].body.decode()
    instance.call("DELETE", f"{PATH}/{made['id']}", expect=204)


def test_exhausted_attempts_end_as_failed(instance):
    with receiver(500) as it:
        made = instance.subscribe(it)
        instance.ingest("Exhausted.")
        record = instance.settled(made, "failed")
    assert (record["attempts"], len(it.requests)) == (3, 3)
    assert record["next_attempt_at"] is record["delivered_at"] is None
    instance.call("DELETE", f"{PATH}/{made['id']}", expect=204)


def test_an_inactive_subscription_receives_nothing_until_it_is_active_again(instance):
    with receiver(204) as it:
        made = instance.subscribe(it)
        address = f"{PATH}/{made['id']}"
        instance.call("PATCH", address, {"active": False}, expect=200)
        instance.ingest("Unheard.")
        instance.call("POST", f"{address}/test", expect=409)
        instance.call("PATCH", address, {"active": True}, expect=200)
        heard = instance.ingest("Heard.")
        instance.settled(made, "delivered")
    [request] = it.requests
    assert heard["document_id"] in request.body.decode()
    instance.call("DELETE", address, expect=204)


def test_during_a_rotation_both_secrets_verify(instance):
    with receiver(204) as it:
        made = instance.subscribe(it, secret="the first secret")
        fresh = instance.manage("webhooks_rotate_secret", made["id"], "--overlap", "1")
        instance.call("POST", f"{PATH}/{made['id']}/test", expect=202)
        instance.settled(made, "delivered")
    [request] = it.requests
    assert request.headers["X-Gateway-Signature"].count("v1=") == 2
    assert request.headers["X-Gateway-Event"] == "webhook.test"
    assert stripe_accepts(request, "the first secret")
    assert stripe_accepts(request, fresh)
    assert not stripe_accepts(request, "another")
    instance.call("DELETE", f"{PATH}/{made['id']}", expect=204)
