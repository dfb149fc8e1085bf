"""The benchmark of growth fills a database of its own, prints each stage, and drops it."""

from __future__ import annotations

import os
from io import StringIO

import psycopg
import pytest
from django.core.management import CommandError, call_command

from benchmarks.__main__ import command
from benchmarks.deliveries import environments

URL = os.environ.get("DATABASE_URL", "")


def databases() -> set[str]:
    with psycopg.connect(URL) as connection:
        rows = connection.execute("SELECT datname FROM pg_database").fetchall()
    return {name for (name,) in rows}


@pytest.mark.slow
@pytest.mark.skipif(not URL.startswith("postgres"), reason="fills PostgreSQL")
def test_each_stage_is_measured_and_nothing_is_left_behind(monkeypatch):
    out, name = StringIO(), environments.scratch_name()
    monkeypatch.setattr(environments, "scratch_name", lambda: name)
    call_command(
        command("scale"),
        deliveries=2000,
        endpoints=60,
        postgres=URL,
        stdout=out,
        stderr=StringIO(),
    )
    rows = {
        line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ")[1:]
        for line in out.getvalue().splitlines()
        if line.startswith("| ")
    }
    assert rows["/admin/webhooks_core/delivery/1/change/"][0] == ""
    for what in (
        "/readyz?all",
        "publish() to 50 endpoints",
        "retention, 1,000 deliveries",
    ):
        assert len(rows[what]) == 2
        assert float(rows[what][1].replace(",", "")) > 0
    assert name not in databases()


def test_a_database_of_another_kind_is_refused():
    with pytest.raises(CommandError, match=r"^--postgres: not a postgres://"):
        call_command(command("scale"), postgres="sqlite:///x")
