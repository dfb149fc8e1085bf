"""The code of the guides for those who move to Signpost runs."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest

from gateway import configuration
from gateway.chat.policies.rules import Rule
from gateway.erasure import tenant_erasure
from tests.docs.samples import DOCS, filled, sample
from webhooks_core.models import Delivery, Endpoint, Event

# The profile of the guides is the reader's own.
OWN = {'"shop"': '"recording"', '"item.sold"': '"summary.completed"'}


def run(page: str, name: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(filled(sample(page, "python", name), OWN), namespace)  # noqa: S102
    return namespace


@pytest.mark.django_db
def test_an_endpoint_and_an_event_move_from_svix():
    run("guides/from-svix.md", "move-svix")
    endpoint = Endpoint.objects.get(owner="customer_7")
    assert endpoint.standard_headers
    delivery = Delivery.objects.get(endpoint=endpoint)
    assert delivery.event.dedupe_key == "sale_1"


@pytest.mark.django_db
def test_publishing_replaces_a_task():
    run("guides/from-celery.md", "move-celery")["sell"]("7", "lamp")
    assert Event.objects.get(owner="7").type == "summary.completed"


@pytest.mark.django_db
def test_a_task_of_another_queue_publishes():
    run("tasks.md", "task-publish")["close_month"]("7")
    assert Event.objects.get(owner="7").type == "summary.completed"


def test_the_guide_names_what_is_erased_of_a_tenant():
    guide = " ".join((DOCS / "guides/erase.md").read_text().split())
    _, tenant, _ = re.split(r" - (?:A|An) \*\*", guide, maxsplit=2)
    assert [name for name in tenant_erasure("acme").rows if name not in tenant] == []


def test_the_lines_of_cron_have_five_fields_and_a_command():
    text = sample("tasks.md", "sh", "cron")
    lines = re.findall(r"^(?:[*/\d]+ +){5}cd \S+ && (.+)$", text, re.MULTILINE)
    assert len(lines) == len(text.splitlines()) == 2
    for line in lines:
        assert line.startswith(".venv/bin/python manage.py webhooks_")


def test_the_policies_are_declared_with_a_function_of_the_reader(tmp_path, monkeypatch):
    (tmp_path / "rules.py").write_text(sample("policies.md", "python", "own-rule"))
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "gateway.yaml"
    file.write_text(sample("policies.md", "yaml", "policies"))
    own = Rule.of(configuration.load(file, environ={}).policies[-1])
    assert own.find is not None
    assert list(own.find("Dear Ada Lovelace!")) == [(5, 17)]
    del sys.modules["rules"]


def test_the_models_of_litellm_are_declared(tmp_path):
    text = sample("guides/from-litellm.md", "yaml", "move-litellm")
    file = tmp_path / "gateway.yaml"
    file.write_text(text)
    environ = dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "secret")
    models = configuration.load(file, environ=environ).models
    assert [model.name for model in models] == ["large", "claude"]
