"""What operators copy: the container files, the units and the checklist fit the code."""

from __future__ import annotations

import configparser
import re
import shlex

import pytest
import yaml
from django.conf import settings
from django.core.management import get_commands

from tests.deploy_check import PRODUCTION
from tests.docs.samples import DOCS

ROOT = settings.BASE_DIR
PAGE = (DOCS / "operations.md").read_text()
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
EXAMPLE = dict(
    re.findall(r"^([A-Z_]+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE)
)
VARIABLES = set(
    re.findall(r"^\| `([A-Z_]+)` \|", (DOCS / "settings.md").read_text(), re.MULTILINE)
)


def test_the_example_and_compose_set_what_production_requires():
    given = set(EXAMPLE) | set(COMPOSE["x-signpost"]["environment"])
    assert set(PRODUCTION) <= given


def test_the_example_names_known_variables_and_holds_no_secret():
    assert set(EXAMPLE) - VARIABLES == {"POSTGRES_PASSWORD"}
    for name in ("SECRET_KEY", "WEBHOOK_SECRET_KEYS", "METRICS_TOKEN"):
        assert EXAMPLE[name] == ""


def test_compose_runs_two_workers_and_waits_for_the_migrations():
    services = COMPOSE["services"]
    assert set(services) == {"postgres", "redis", "migrate", "web", "worker"}
    assert services["worker"]["deploy"]["replicas"] == 2
    for name in ("web", "worker"):
        assert services[name]["depends_on"]["migrate"] == {
            "condition": "service_completed_successfully"
        }
    assert services["web"]["ports"] == ["127.0.0.1:8000:8000"]


def test_the_image_runs_without_rights_and_checks_its_health():
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    user = max(i for i, line in enumerate(lines) if line.startswith("USER "))
    command = max(i for i, line in enumerate(lines) if line.startswith("CMD "))
    assert lines[user] == "USER 10001"
    assert user < command
    # One base, by an exact tag or by its digest.
    assert any(re.match(r"ARG BASE=python:3\.\d+\.\d+-slim", line) for line in lines)
    bases = [line for line in lines if line.startswith("FROM")]
    assert bases == ["FROM ${BASE} AS build", "FROM ${BASE}"]
    assert any(line.startswith("HEALTHCHECK") for line in lines)
    for name in PRODUCTION.keys() - {"ENVIRONMENT"}:
        assert re.search(rf"\b{name}=", "\n".join(lines)), name


def test_no_secret_of_this_folder_gets_into_the_image():
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {".env", "var", ".git"} <= set(ignored)


@pytest.mark.parametrize("name", ["signpost-web@.service", "signpost-worker@.service"])
def test_the_units_run_commands_that_exist(name):
    text = re.search(
        rf"^```ini {re.escape(name)}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE
    )
    assert text
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text.group(1))
    words = shlex.split(unit["Service"]["ExecStart"])
    assert words[2] in get_commands()
    assert int(unit["Service"]["TimeoutStopSec"]) > 30


def test_the_page_names_variables_that_exist():
    prefixes = r"(?:WEBHOOK|GATEWAY|METRICS|TRUST|OAUTH|SECRET|BASE|ALLOWED)"
    variables = set(re.findall(rf"`({prefixes}[A-Z_]*_[A-Z_]+)(?:=\w+)?`", PAGE))
    assert variables <= VARIABLES


def test_nginx_clears_the_headers_that_claim_an_identity():
    for name in ("X-Tenant-ID", "X-Principal-ID", "Forwarded"):
        assert re.search(rf'proxy_set_header {name}\s+"";', PAGE), name
