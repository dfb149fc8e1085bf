import json
import re

import pytest
import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from config.operations import metrics
from gateway.chat.metrics import ChatCollector, budget_store_up
from tests.database import no_database
from tests.docs.samples import DOCS
from tests.factories import UserFactory
from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import (
    AttemptFactory,
    EndpointFactory,
    publish_event,
    publish_events,
)
from webhooks_core import tasks
from webhooks_core.models import (
    Attempt,
)

ELSEWHERE = {"REMOTE_ADDR": "203.0.113.9"}
TOKEN = "a-token-that-nobody-guesses"


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """A registry whose tally has seen nothing, and no wait for commits."""
    monkeypatch.setattr(metrics, "COMMITTED_AFTER_S", 0.0)
    registry = CollectorRegistry()
    registry.register(metrics.WebhookCollector())
    registry.register(ChatCollector())
    registry.register(metrics.requests)
    registry.register(budget_store_up)
    monkeypatch.setattr(metrics, "registry", registry)


def scrape(client, **headers) -> dict[tuple[str, ...], float]:
    """Return samples by name and label values, those in the order of their labels' names."""
    answer = client.get("/metrics", **headers)
    assert answer.status_code == 200
    return {
        (
            sample.name,
            *(sample.labels[name] for name in sorted(sample.labels)),
        ): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def test_what_waits_and_attempts_are_counted(client, transactional_db, plain):
    with receiver(500, 204, 204) as hook:
        EndpointFactory.create(url=hook.url)
        scrape(client)
        publish_events(3)
        dispatch()
    assert Attempt.objects.count() == 3
    scrape(client)
    seen = scrape(client)
    assert seen["signpost_webhook_attempts_total", "ok", "plain"] == 2
    assert seen["signpost_webhook_attempts_total", "http", "plain"] == 1
    assert seen["signpost_webhook_deliveries_pending",] == 1
    assert seen["signpost_webhook_endpoints_disabled",] == 0
    assert scrape(client)["signpost_webhook_attempts_total", "ok", "plain"] == 2


@pytest.mark.parametrize("is_before_the_first_scrape", [True, False])
def test_attempts_of_before_and_beside_open_transactions_are_not_counted(
    client, db, plain, monkeypatch, is_before_the_first_scrape
):
    if not is_before_the_first_scrape:
        monkeypatch.setattr(metrics, "COMMITTED_AFTER_S", 3600.0)
        scrape(client)
    AttemptFactory.create()
    for _ in range(3):
        seen = scrape(client)
    assert ("signpost_webhook_attempts_total", "ok", "plain") not in seen


def test_requests_are_counted_by_route_and_clients_create_no_labels(client, db):
    client.get("/v1/webhooks/ep_1/deliveries")
    client.get("/made-up-by-a-stranger")
    client.generic("BREW", "/healthz")
    text = client.get("/metrics").content.decode()
    assert 'route="/v1/webhooks/<str:endpoint_id>/deliveries",status="401"' in text
    assert "stranger" not in text
    assert "BREW" not in text
    assert 'method="other",route="/healthz",status="405"' in text


def test_without_a_database_there_is_no_answer_for_a_scraper(client, db):
    client.raise_request_exception = False
    with no_database():
        assert client.get("/metrics").status_code == 503


def test_metrics_need_a_token_staff_or_loopback(client, db, settings):
    settings.METRICS_TOKEN = TOKEN
    answer = client.get("/metrics", **ELSEWHERE)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert b"signpost_" not in answer.content
    assert client.get("/metrics", HTTP_X_FORWARDED_FOR="127.0.0.1").status_code == 401
    scrape(client, HTTP_AUTHORIZATION=f"Bearer {TOKEN}", **ELSEWHERE)
    client.force_login(UserFactory.create(superuser=True, username="root"))
    scrape(client, **ELSEWHERE)


def test_a_scraper_asks_each_process_over_plain_http(client, db, settings):
    settings.SECURE_SSL_REDIRECT = True
    assert client.get("/metrics").status_code == 200


def test_the_number_of_queries_does_not_grow(
    client, db, plain, django_assert_max_num_queries
):
    scrape(client)
    EndpointFactory.create_batch(20)
    publish_event()
    with django_assert_max_num_queries(16):
        scrape(client)


def names(client) -> set[str]:
    tasks.sweep()
    answer = client.get("/metrics").content.decode()
    types = re.findall(
        r"^# TYPE ((?:signpost|gateway_chat)_\w+) ", answer, re.MULTILINE
    )
    return {name for name in types if not name.endswith("_created")}


# Prometheus' own, and those of its client for the process.
ELSEWHERE_NAMED = {"up", "process_resident_memory_bytes", "process_cpu_seconds_total"}


def rules() -> list[str]:
    text = (DOCS / "monitoring" / "alerts.yaml").read_text()
    groups = yaml.safe_load(text)["groups"]
    return [rule["expr"] for group in groups for rule in group["rules"]]


def panels() -> list[str]:
    board = json.loads((DOCS / "monitoring" / "grafana.json").read_text())
    return [
        target["expr"]
        for panel in board["panels"]
        for target in panel.get("targets", ())
    ]


def test_alerts_and_dashboard_ask_for_metrics_that_exist(client, db):
    exported = names(client) | ELSEWHERE_NAMED
    for expression in (*rules(), *panels()):
        bare = re.sub(r'"[^"]*"|\[[^]]*\]', "", expression)
        used = re.findall(r"\b(?:signpost|gateway_chat|process)_\w+|\bup\b", bare)
        asked_for = {re.sub(r"_(bucket|sum|count)$", "", name) for name in used}
        assert asked_for, expression
        assert asked_for <= exported, expression
