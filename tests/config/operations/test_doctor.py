from __future__ import annotations

import json
import tempfile
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django_q.models import Schedule

from config.operations import doctor, health
from tests.config.operations.test_health import no_database
from tests.egress import EgressProxy
from tests.factories import UserFactory
from tests.webhooks_core.factories import EndpointFactory
from webhooks_core import tasks
from webhooks_core.models import Endpoint, EngineState


def run(*options: str) -> tuple[int, dict[str, list[str]]]:
    """Return the exit status, and the levels found under each name."""
    out = StringIO()
    try:
        call_command("doctor", "--json", *options, stdout=out)
        code = 0
    except SystemExit as end:
        code = int(str(end.code))
    answer = json.loads(out.getvalue())
    assert answer["ok"] is (code == 0)
    levels: dict[str, list[str]] = {}
    for finding in answer["findings"]:
        assert finding["message"]
        levels.setdefault(finding["name"], []).append(finding["level"])
    return code, levels


def message(of: str) -> str:
    findings = doctor.examine(include_reach=False)
    return " ".join(message for name, _, message in findings if name == of)


@pytest.fixture
def sound(db):
    """A deployment in which all is well."""
    tasks.sweep()
    Schedule.objects.update_or_create(
        name="webhooks: sweep", defaults={"func": doctor.SWEEP, "repeats": -1}
    )
    UserFactory.create(superuser=True, username="root")


def test_a_sound_deployment_exits_with_0(sound):
    code, levels_by_name = run("--strict")
    assert code == 0
    assert {level for levels in levels_by_name.values() for level in levels} == {"ok"}
    assert {"settings", *health.CHECKS, *doctor.EXAMINATIONS} == set(levels_by_name)


def test_the_text_output_has_a_line_for_each_finding(sound):
    out = StringIO()
    call_command("doctor", stdout=out)
    lines = out.getvalue().splitlines()
    assert lines[-1] == "All is well."
    assert all(line.startswith("ok ") for line in lines[:-1])


def test_warnings_fail_only_when_strict(sound):
    User.objects.all().delete()
    code, levels = run()
    assert (code, levels["staff"]) == (0, ["warning"])
    assert run("--strict")[0] == 1
    assert "createsuperuser" in message("staff")
    out = StringIO()
    call_command("doctor", stdout=out)
    assert out.getvalue().splitlines()[-1] == "It works, with 1 warning."


def test_an_unavailable_database_is_a_finding_and_no_error(db):
    with no_database():
        code, levels = run()
    assert code == 1
    assert levels["database"] == levels["secrets"] == levels["schedule"] == ["failed"]


@pytest.mark.parametrize("model", [Schedule, EngineState])
def test_a_missing_schedule_or_engine_state_is_a_failure(sound, model):
    model.objects.all().delete()
    assert run()[1]["schedule"] == ["failed"]


def test_secrets_that_no_key_decrypts_are_a_failure(sound, plain, settings):
    EndpointFactory.create()
    assert run()[1]["secrets"] == ["ok"]
    settings.WEBHOOK_SECRET_KEYS = ["A" * 43 + "="]
    assert run()[1]["secrets"] == ["failed"]
    assert message("secrets").startswith("1 secret cannot be decrypted")


def test_disabled_endpoints_are_a_warning(sound, plain):
    EndpointFactory.create()
    Endpoint.objects.update(status=Endpoint.Status.DISABLED)
    assert run()[1]["endpoints"] == ["warning"]


def test_an_egress_proxy_that_cannot_be_reached_is_a_failure(sound, settings):
    with EgressProxy().running() as egress:
        settings.WEBHOOK_PROXY_URL = egress.url
        assert run()[1]["egress"] == ["ok"]
    assert run()[1]["egress"] == ["failed"]
    assert "p%40ss" not in message("egress")


def test_a_full_disk_is_a_warning(sound, monkeypatch):
    monkeypatch.setattr(doctor, "MIN_FREE_BYTES", 1 << 62)
    assert run()[1]["disk"] == ["warning"]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="is on a server")
def test_the_disk_is_that_of_the_database(sound, monkeypatch, tmp_path):
    database = str(tmp_path / "signpost.sqlite3")
    monkeypatch.setitem(connection.settings_dict, "NAME", database)
    assert message("disk").endswith(f" MB are free in {tmp_path}.")


def test_production_needs_its_static_files(sound, settings, tmp_path):
    settings.LOCAL = False
    settings.STATIC_ROOT = tmp_path
    assert "collectstatic" in message("static")
    (tmp_path / "staticfiles.json").touch()
    assert message("static") == "Static files are collected."


@pytest.mark.parametrize(
    ("silenced", "is_found"), [([], True), (["signpost.E004"], False)]
)
def test_production_reports_the_system_checks_that_are_not_silenced(
    sound, settings, silenced, is_found
):
    settings.LOCAL, settings.DEBUG = False, True
    settings.SILENCED_SYSTEM_CHECKS = silenced
    assert ("signpost.E004" in message("settings")) is is_found


def test_a_missing_folder_for_temporary_files_is_a_failure(
    sound, monkeypatch, tmp_path
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    assert run()[1]["temporary files"] == ["failed"]
    assert "--tmpfs /tmp" in message("temporary files")


def test_the_checks_of_tables_are_findings_too(sound):
    MigrationRecorder(connection).record_applied("webhooks_core", "0001_initial")
    assert "signpost.E008" in message("settings")
