"""The table of commands in operations.md: all of ours are there, and --json tells what it says."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command, get_commands

from catalog.webhooks import OWNER, PROFILE
from gateway import keys
from recording.accounts import personal_tokens
from tests.docs.samples import DOCS
from tests.docs.test_commands import options
from tests.factories import UserFactory
from webhooks_core import endpoints
from webhooks_core.models import Delivery
from webhooks_core.publishing import publish
from webhooks_core.signing import terminal
from webhooks_core.signing.verification import Received, verify

ROW = re.compile(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
SECTION = (
    (DOCS / "operations.md").read_text().split("\n## Every command\n")[1].split("\n## ")
)[0]
TABLE = dict(ROW.findall(SECTION))
SILENT = {name for name, cell in TABLE.items() if cell.startswith("no `--json`")}
RECORDING = shlex.quote(str(DOCS / "samples" / "recording.json"))
CONFIGURATION = shlex.quote(str(settings.BASE_DIR / "gateway" / "sample.yaml"))


@dataclass(frozen=True)
class Prepared:
    """The rows that the commands below name."""

    user: User
    key: int
    token: int
    receiver: str
    delivery: str
    book: Path


@pytest.fixture
def prepared(settings, db, tmp_path) -> Prepared:
    settings.CATALOG_EVENTS = True
    user = UserFactory.create(username="ada")
    created = endpoints.create(
        profile=PROFILE, owner=OWNER, url="http://127.0.0.1:9/", event_types=[]
    )
    data = {"id": "1"}
    publish(profile=PROFILE, owner=OWNER, event_type="book.deleted", data=data)
    Delivery.objects.all().fail(error="over")
    book = tmp_path / "books.csv"
    book.write_text("name,pageCount,authorFirstName,authorLastName\nEmma,1,Jane,Austen")
    return Prepared(
        user=user,
        key=keys.create(tenant="acme", principal="ada").key.pk,
        token=personal_tokens.create(user=user, days=1).token.pk,
        receiver=created.endpoint.public_id,
        delivery=Delivery.objects.get().public_id,
        book=book,
    )


# A command line, and what its answer holds for sure.
LINES = [
    (
        "webhooks_verify {prepared.book} --header=X-Catalog-Signature:t=1,v1=00 --secret=whsec_x",
        {"verified": False},
    ),
    ("webhooks_replay --endpoint {prepared.receiver}", {"found": 1, "queued": 1}),
    (
        "webhooks_replay --endpoint {prepared.receiver} --dry-run",
        {"found": 1, "queued": 0},
    ),
    ("webhooks_replay --delivery {prepared.delivery}", {"found": 1, "queued": 1}),
    (
        "webhooks_replay --delivery {prepared.delivery} --dry-run",
        {"queued": 0, "delivery_id": None},
    ),
    ("webhooks_replay --failed --since 1h", {"found": 1, "queued": 1}),
    ("webhooks_status", {"state": "healthy", "attempts": 0}),
    ("webhooks_pause --endpoint {prepared.receiver}", {}),
    ("webhooks_enable --owner catalog", {"enabled": []}),
    ("webhooks_sweep", {"removed": 0}),
    ("webhooks_reencrypt", {"reencrypted": 1, "unreadable": 0}),
    ("webhooks_rotate_secret {prepared.receiver}", {}),
    ("erase --tenant acme", {"erased": False}),
    ("create_gateway_key --tenant acme --principal ada", {"expires_at": None}),
    ("create_gateway_key --tenant acme --principal ada --days 1", {}),
    ("list_gateway_keys", {"tenant": "acme", "state": "live"}),
    ("revoke_gateway_key {prepared.key}", {"revoked": 1}),
    ("emit_event drift.detected --tenant acme", {"type": "drift.detected"}),
    (f"check_gateway_config {CONFIGURATION}", {}),
    ("sync_gateway_config", {"removed": 0}),
    (
        "prune_gateway",
        {"decisions": 0, "documents": 0, "idempotency_keys": 0, "portal_links": 0},
    ),
    ("create_portal_link --tenant acme", {}),
    ("create_personal_token ada --days 1", {}),
    ("list_personal_tokens", {"user": "ada", "last_used_at": None}),
    ("revoke_personal_token {prepared.token}", {"revoked": 1}),
    ("prune_personal_tokens", {"deleted": 0}),
    (
        f"import_recording {RECORDING} --account ada",
        {"done": "imported", "ignored": []},
    ),
    (
        f"import_recording {RECORDING} --account ada --no-event",
        {"done": "imported", "event_id": None},
    ),
    ("remove_second_factor ada", {"removed": False}),
    ("prune_oauth", {"codes": 0}),
    ("export_catalog {prepared.book}", {"written": 0}),
    ("import_catalog {prepared.book}", {"added": 1}),
    (
        "catalog_webhooks add http://127.0.0.1:9/",
        {"url": "http://127.0.0.1:9/", "event_types": []},
    ),
    ("catalog_webhooks list", {"event_types": []}),
    ("catalog_webhooks remove {prepared.receiver}", {}),
]
# Told elsewhere: what waits, what looks at the whole deployment, what is measured.
ELSEWHERE = {"webhooks_listen", "webhooks_dispatch", "doctor"}
SOMETIMES = {
    "webhooks_replay": {"since", "delivery_id", "errors"},
    "catalog_webhooks": {"secret", "removed"},
}


def ours() -> set[str]:
    labels = {
        config.name
        for config in apps.get_app_configs()
        if "/site-packages/" not in config.path
    }
    return {name for name, app in get_commands().items() if app in labels}


def keys_of(command: str) -> set[str]:
    return set(re.findall(r"`([a-z_ ]+)`", TABLE[command])) - {"add", "remove"}


def answered(command: str, *arguments: str) -> tuple[int, Any]:
    """Run a command with --json; return its exit status and what it told."""
    out, status = StringIO(), 0
    try:
        call_command(command, *arguments, "--json", stdout=out)
    except SystemExit as left:
        status = int(left.code or 0)
    return status, json.loads(out.getvalue())


def test_the_table_holds_every_command_once():
    assert ours() == TABLE.keys()
    assert len(ROW.findall(SECTION)) == len(TABLE)


@pytest.mark.parametrize("command", TABLE)
def test_a_command_has_json_unless_the_table_says_no(command):
    assert ("--json" in options(command)) == (command not in SILENT)


def test_every_answer_is_looked_at():
    assert {line.split()[0] for line, _ in LINES} | ELSEWHERE == TABLE.keys() - SILENT


@pytest.mark.parametrize(("line", "held"), LINES)
def test_json_tells_what_the_table_says_and_nothing_else(prepared, line, held):
    command, *arguments = shlex.split(line.format(prepared=prepared))
    status, document = answered(command, *arguments)
    assert status == (1 if command == "webhooks_verify" else 0)
    for one in document if isinstance(document, list) else [document]:
        assert one.keys() <= keys_of(command)
        assert held.items() <= one.items()
        if command == "catalog_webhooks" and "remove" in arguments:
            assert one == {"removed": prepared.receiver}
        else:
            assert keys_of(command) - one.keys() <= SOMETIMES.get(command, set())


LISTS = {
    "list_gateway_keys": "gateway keys",
    "list_personal_tokens": "personal tokens",
    "catalog_webhooks list": "receivers",
    "webhooks_status": "endpoints",
}


def test_every_command_that_lists_is_looked_at():
    listing = {name for name, cell in TABLE.items() if "one list" in cell}
    assert {line.split()[0] for line in LISTS} == listing


@pytest.mark.parametrize(("line", "noun"), LISTS.items())
def test_an_empty_list_is_a_sentence_or_an_empty_array(line, noun, settings, db):
    settings.CATALOG_EVENTS = True
    out, err = StringIO(), StringIO()
    call_command(*line.split(), stdout=out, stderr=err)
    assert (out.getvalue(), err.getvalue()) == ("", f"There are no {noun}.\n")
    assert answered(*line.split()) == (0, [])


@pytest.mark.parametrize("line", LISTS)
def test_a_list_is_one_array(line, prepared):
    status, document = answered(*line.split())
    assert (status, type(document), len(document)) == (0, list, 1)


@pytest.mark.django_db(transaction=True)
def test_dispatching_says_how_many_attempts_it_made():
    assert answered("webhooks_dispatch") == (0, {"attempts": 0})


def test_a_received_request_is_told_as_the_table_says():
    received = Received(path="/", headers={}, body=b"{}", at=0.0)
    verification = verify(received, secrets=[], tolerance_s=0)
    line = json.loads(terminal.as_json(received, verification, 204))
    assert line.keys() == keys_of("webhooks_listen")


@pytest.mark.django_db
def test_the_doctor_answers_as_the_table_says():
    status, document = answered("doctor")
    assert document.keys() == keys_of("doctor")
    assert status == (0 if document["ok"] else 1)
