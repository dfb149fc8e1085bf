"""The benchmark of deliveries runs in environments of its own, prints its figures, and removes everything."""

from __future__ import annotations

import json
import tempfile
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from benchmarks.__main__ import command

CLOSED = 9  # discard: no process listens there


def run(*parts: str) -> str:
    """Return what a quick run on SQLite alone prints; no database of the test is open."""
    out = StringIO()
    call_command(
        command("deliveries"),
        only=list(parts),
        quick=True,
        postgres="",
        redis="",
        stdout=out,
        stderr=StringIO(),
        json=True,
    )
    return out.getvalue()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.slow
def test_every_figure_is_told_to_machines_and_nothing_is_left_behind(folder):
    figures = json.loads(run("speed", "publishing", "claims"))
    assert set(figures) == {
        *("at", "commit", "machine", "command"),
        *("parts", "targets", "skipped"),
    }
    assert set(figures["parts"]) == {
        *("receiver", "speed 1 KB", "speed 50 KB", "publishing", "claims")
    }
    [ours] = figures["parts"]["speed 1 KB"]["Signpost, SQLite, 1 dispatcher"]
    assert ours["rate"] > 0
    assert ours["cpu"] > 0
    assert set(figures["parts"]["claims"]["SQLite"]) == {"1000", "100000"}
    for target in figures["targets"]:
        assert set(target) == {"what", "wanted", "measured", "met"}
    assert "PostgreSQL" in figures["skipped"]
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_whole_clusters_and_instances_are_measured_and_then_gone(folder):
    parts = json.loads(run("latency", "kill", "ingest"))["parts"]
    assert len(parts["latency"]["ORM broker, SQLite"]) == 6
    counts = parts["kill"]["ORM broker, SQLite"]
    assert counts["published"] == counts["delivered"] == 320
    assert counts["lost"] == 0
    assert counts["twice"] <= counts["claimed"]
    assert set(parts["ingest"]) == {
        *("no subscriber", "a healthy one", "a hanging one"),
    }
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_hanging_and_slow_receivers_and_large_bodies_are_measured(folder):
    parts = json.loads(run("isolation", "slow", "memory"))["parts"]
    [(alone, beside)] = parts["isolation"]["SQLite"]
    assert alone > 0
    assert beside > 0
    [(limit, ours)] = parts["slow"]
    assert limit["rate"] > 0
    assert ours["rate"] > 0
    assert parts["memory"]["bodies"] == 100
    assert parts["memory"]["peak"] > 0


@pytest.mark.slow
def test_what_is_not_installed_or_not_there_is_skipped_with_a_reason(folder):
    report = json.loads(run("others"))
    assert {"Celery, one process", "BullMQ + undici"} <= report["skipped"].keys()
    assert "django-q2" in report["parts"]["speed 1 KB, one process each"]


def test_an_unknown_part_is_an_error_before_anything_starts(folder):
    with pytest.raises(CommandError, match="no such part: sped"):
        run("sped")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--postgres=nope", "^--postgres: not a postgres://… address$"),
        ("--redis=redis", "^--redis: not a redis://… address$"),
        (f"--postgres=postgres://ada:hush@127.0.0.1:{CLOSED}/x", "^--postgres is not"),
        ("--postgres=postgres://127.0.0.1:nope/x", "^--postgres is not usable: "),
        (f"--redis=redis://:hush@127.0.0.1:{CLOSED}", "^--redis is not usable: .*efus"),
        ("--redis=redis://127.0.0.1:nope", "^--redis is not usable: "),
    ],
)
def test_a_server_that_was_named_and_is_not_there_ends_the_run_at_once(
    folder, option, words, capfd
):
    with pytest.raises(CommandError, match=words) as refused:
        call_command(
            command("deliveries"), "--quick", "--postgres=", "--redis=", option
        )
    assert "\n" not in str(refused.value)
    assert "hush" not in str(refused.value)
    assert capfd.readouterr() == ("", "")
    assert list(folder.iterdir()) == []
