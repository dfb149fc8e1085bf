from __future__ import annotations

import shlex
import sqlite3
import time
from contextlib import closing
from datetime import datetime

import requests

from tests.docs.samples import sample
from tests.e2e.starting import Instance, hurry, outcomes, web_server
from tests.running import free_port


def count(instance: Instance, table: str) -> int:
    with closing(sqlite3.connect(instance.data)) as connection:
        found = connection.execute(f"select count(*) from {table}")  # noqa: S608
        return int(found.fetchone()[0])


def retries(instance: Instance) -> list[list[float]]:
    """Return when deliveries that failed once were tried, and when they are due again."""
    with closing(sqlite3.connect(instance.data)) as connection:
        rows = connection.execute(
            "select started_at, next_attempt_at from webhooks_core_delivery"
            " join webhooks_core_attempt on delivery_id = webhooks_core_delivery.id"
            " where attempts = 1 and status = 0 and claimed_by is null"
        )
        return [
            [datetime.fromisoformat(f"{at}+00:00").timestamp() for at in row]
            for row in rows
        ]


def test_the_demo_of_the_first_page_shows_that_events_arrive_and_leaves_nothing(
    instance,
):
    tables = (
        "recording_personaltoken",
        "recording_recording",
        "gateway_gatewaykey",
        "gateway_document",
        "catalog_book",
        "catalog_author",
    )
    before = [count(instance, table) for table in tables]
    python, script, *words = shlex.split(sample("../README.md", "sh", "demo"))
    assert (python, script) == (".venv/bin/python", "manage.py")
    with instance.run(*words) as it:
        assert it.status() == 0, it.output
        assert "✔ summary.completed arrives, and its signature holds" in it.output
        assert "status     1 (delivered)" in it.output
        assert "✔ A chat answer streams" in it.output
        assert "✔ ingest.completed arrives, and its signature holds" in it.output
        assert it.lines[-1] == "All of it works.\n"
    assert [count(instance, table) for table in tables] == before
    headers = {"Authorization": f"Bearer {instance.token}"}
    answer = requests.get(instance.url + "/v1/webhooks", headers=headers, timeout=60)
    assert answer.json() == {"items": []}


def test_a_failed_attempt_is_followed_by_a_real_retry_a_minute_later(instance):
    with instance.run("demo", "--url", instance.url, "--failing") as it:
        it.wait_for("status     0 (pending)")
        [[tried, due]] = retries(instance)
        assert due - tried >= 60
        assert due - time.time() <= 66  # the tenth more is the jitter
        hurry(instance.data)
        assert it.status() == 0, it.output
        assert "last error HTTP 500" in it.output
        assert "attempts   2" in it.output


def test_what_the_demo_misses_is_named(instance, tmp_path):
    """A worker that is not there; this instance's own database; its user; its tables."""
    data, url = tmp_path / "copy.sqlite3", instance.url
    instance.copy_data(data)
    with web_server(data) as lonely:
        words = ("demo", "--url", lonely.url, "--timeout", "1")
        other = ("demo", "--url", url)
        nobody = ("demo", "--url", url, "--user", "nobody")
        missing = outcomes(words, other, nobody, environment=lonely.variables)
    worker, database, user = missing
    assert worker.status == database.status == user.status == 1
    assert "✘ summary.completed arrives" in worker.output
    assert "is the task cluster running (`manage.py qcluster`)" in worker.output
    assert "POST /v1/webhooks answered 401" in database.output
    assert "there is no user 'nobody' in this database" in user.output
    assert not [it for it in missing if "Traceback" in it.output]

    empty = Instance(instance.process, tmp_path / "empty.sqlite3", url)
    missing = outcomes(
        ("demo", "--url", url),
        ("demo", "--url", f"http://127.0.0.1:{free_port()}"),
        ("demo", "--url", "127.0.0.1:8000"),
        ("demo", "--url", url, "--timeout", "soon"),
        environment=empty.variables,
    )
    tables, answer, option, timeout = missing
    assert tables.status == answer.status == 1
    assert "is not usable: no such table" in tables.output
    assert "nothing answers at" in answer.output
    assert "`make run`" in answer.output
    assert option.status != 0 != timeout.status
    assert "--url: Not an http or https origin." in option.output
    assert "argument --timeout" in timeout.output
    assert not [it for it in missing if "Traceback" in it.output]
