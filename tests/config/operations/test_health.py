import json
from datetime import datetime, timedelta

import pytest
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from config.operations import health
from tests.database import no_database
from tests.factories import UserFactory
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core import tasks
from webhooks_core.models import Delivery, EndpointQueue, EngineState
from webhooks_core.upkeep import stats

ELSEWHERE = "203.0.113.9"


def ask(client, path="/readyz", **headers):
    answer = client.get(path, **headers)
    return answer.status_code, json.loads(answer.content)


def statuses(body) -> dict[str, str]:
    return {name: check["status"] for name, check in body["checks"].items()}


@pytest.fixture
def worked(db):
    tasks.sweep()


def test_healthz_needs_nothing(client):
    # No database mark: a query would fail the test.
    assert ask(client, "/healthz") == (200, {"status": "ok"})


def test_healthz_answers_plain_http_where_everything_else_is_redirected(
    client, settings
):
    settings.SECURE_SSL_REDIRECT = True
    assert client.get("/healthz").status_code == 200
    assert client.get("/admin/").status_code == 301


def test_a_working_system_is_ready(client, worked):
    code, body = ask(client)
    assert (code, body["status"]) == (200, "ok")
    assert set(statuses(body).values()) == {"ok"}
    assert list(body["checks"]) == list(health.CHECKS)


def test_without_a_database_it_is_not_ready_and_a_session_is_ignored(client, db):
    client.force_login(UserFactory.create(superuser=True, username="root"))
    with no_database():
        code, body = ask(client, REMOTE_ADDR=ELSEWHERE)
    assert (code, body["status"]) == (503, "unavailable")
    assert statuses(body)["database"] == statuses(body)["migrations"] == "failed"
    assert "detail" not in body["checks"]["database"]


def test_missing_migrations_are_not_ready(client, worked, monkeypatch):
    health.check_migrations.cache_clear()
    monkeypatch.setattr(MigrationExecutor, "migration_plan", lambda *_: ["one", "two"])
    code, body = ask(client)
    assert code == 503
    assert "not applied: 2" in body["checks"]["migrations"]["detail"]


def test_an_unavailable_redis_is_not_ready(client, worked, settings, free_port):
    settings.REDIS_URL = f"redis://:hunter2@127.0.0.1:{free_port}/0"
    code, body = ask(client)
    assert code == 503
    assert "REDIS_URL" in body["checks"]["broker"]["detail"]
    assert "hunter2" not in json.dumps(body)


def test_missing_workers_degrade_the_status_but_the_web_stays_ready(client, db):
    silent = timezone.now() - stats.SILENT_AFTER - timedelta(seconds=1)
    EngineState.objects.update_or_create(pk=1, defaults={"swept_at": silent})
    code, body = ask(client)
    assert (code, body["status"]) == (200, "degraded")
    assert "qcluster" in body["checks"]["worker"]["detail"]
    code, body = ask(client, "/readyz?all")
    assert (code, body["status"]) == (503, "unavailable")


def publish_due(at: datetime) -> None:
    EndpointFactory.create()
    publish_event()
    Delivery.objects.update(next_attempt_at=at)
    EndpointQueue.objects.update(next_due_at=at)


def test_a_late_delivery_degrades_the_status(client, worked, plain):
    publish_due(timezone.now() - timedelta(seconds=health.LATE_AFTER_S + 60))
    code, body = ask(client)
    assert (code, body["status"]) == (200, "degraded")
    assert statuses(body)["oldest_due"] == "failed"


def test_other_clients_see_no_details(client, worked):
    _, body = ask(client, REMOTE_ADDR=ELSEWHERE)
    assert all(set(check) == {"status"} for check in body["checks"].values())


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_is_never_cached_and_only_read(client, worked, path):
    assert "no-store" in client.get(path)["Cache-Control"]
    assert client.post(path).status_code == 405
    assert client.head(path).status_code == 200
