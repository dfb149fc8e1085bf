"""Events that an operator emits: every defined type, data that fits its schema, nothing else."""

from __future__ import annotations

from io import StringIO
from typing import Any

import orjson
import pytest
from django.core.management import CommandError, call_command

from gateway.webhooks import EVENT_TYPES
from tests.gateway.client import stripe_accepts
from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from webhooks_core.models import Event
from webhooks_core.web.json_values import MAX_VALUES

pytestmark = pytest.mark.django_db

DRIFT = dict(EVENT_TYPES["drift.detected"].sample)


def dumps(value: Any) -> str:
    return orjson.dumps(value).decode()


def emit(event_type: str, *arguments: str, tenant: str = "acme") -> str:
    out = StringIO()
    call_command("emit_event", event_type, "--tenant", tenant, *arguments, stdout=out)
    return out.getvalue().strip()


@pytest.mark.django_db(transaction=True)
@pytest.mark.spec("gateway", "Events: every type")
def test_an_operator_can_emit_every_defined_type(acme):
    event_types = [name for name in EVENT_TYPES if name != "webhook.test"]
    with receiver(204) as subscriber:
        subscription = acme.create(subscriber.url, event_types=event_types)
        emitted = {emit(event_type): event_type for event_type in event_types}
        dispatch()
    assert len(subscriber.requests) == len(event_types)
    for request in subscriber.requests:
        assert stripe_accepts(request, subscription["secret"])
        body = orjson.loads(request.body)
        assert body["type"] == emitted.pop(body["id"])
        assert body["data"] == EVENT_TYPES[body["type"]].sample
        assert (body["tenant_id"], body["principal_id"]) == ("acme", "system")
        assert body["request_id"]
        assert len(body["trace_id"]) == 32


def test_emitted_data_may_be_given_and_come_from_a_file(acme, tmp_path):
    acme.create()
    one, two = (dumps(DRIFT | {"value": n, "more": [n]}) for n in (1, 2.5))
    emit("drift.detected", "--data", one)
    file = tmp_path / "data.json"
    file.write_text(two)
    emit("drift.detected", "--file", str(file))
    bodies = Event.objects.order_by("id").values_list("body", flat=True)
    assert [orjson.loads(bytes(body))["data"] for body in bodies] == [
        DRIFT | {"value": 1, "more": [1]},
        DRIFT | {"value": 2.5, "more": [2.5]},
    ]


def test_the_numbers_of_data_keep_every_digit():
    number = "123456789012345678901234567890"
    emit("drift.detected", "--data", dumps(DRIFT | {"more": 7}).replace("7", number))
    assert f":{number}".encode() in bytes(Event.objects.get().body)


@pytest.mark.parametrize(
    ("event_type", "arguments", "words"),
    [
        ("webhook.test", (), "invalid choice"),
        ("unknown", (), "invalid choice"),
        ("drift.detected", ("--tenant", "a b"), "tenant: "),
        ("drift.detected", ("--file", "/none"), "No such file"),
        ("drift.detected", ("--data", "{}", "--file", "x"), "not allowed"),
        *(
            ("drift.detected", ("--data", data), words)
            for data, words in (
                ("{", "--data: not JSON"),
                ("[]", "a JSON object"),
                ("[" + "1," * MAX_VALUES + "1]", "more than 1000000 values"),
                ('{"a": "\ud800"}', "--data: not JSON"),
                ('{"a": 1e400}', "--data: not JSON"),
                ('{"a":' + "[" * 200 + "]" * 200 + "}", "deeper"),
            )
        ),
    ],
)
def test_what_cannot_be_emitted_is_told_and_stores_nothing(
    acme, event_type, arguments, words
):
    acme.create()
    with pytest.raises(CommandError, match=words):
        emit(event_type, *arguments)
    assert not Event.objects.exists()


def test_an_event_is_always_of_a_tenant():
    with pytest.raises(CommandError, match="--tenant"):
        call_command("emit_event", "drift.detected")


FOREIGN: list[tuple[str, dict[str, Any], list[str]]] = [
    (
        "drift.detected",
        {},
        [
            'data: "metric" is',
            'data: "subject" is',
            'data: "threshold" is',
            'data: "value" is',
        ],
    ),
    ("drift.detected", {"value": "0.3"}, ['data.value: "0.3" is not of type "number"']),
    ("drift.detected", {"value": True}, ['data.value: true is not of type "number"']),
    (
        "eval.regression",
        {"run_id": None},
        ['data.run_id: null is not of type "string"'],
    ),
    ("ingest.completed", {"size_bytes": -1}, ["data.size_bytes"]),
    (
        "ingest.completed",
        {"created_at": "now"},
        ['data.created_at: "now" is not a "date'],
    ),
    (
        "ingest.completed",
        {"created_at": "2026-11-21T03:20:00"},
        ['data.created_at: "2026-11-21T03:20:00" is not a "date-time"'],
    ),
    (
        "ingest.completed",
        {"created_at": 7},
        ['data.created_at: 7 is not of type "string'],
    ),
    (
        "audit.policy_violation",
        {"decision": "allowed"},
        ['data.decision: "denied" was'],
    ),
]


@pytest.mark.parametrize(("event_type", "changes", "message"), FOREIGN)
def test_data_that_does_not_fit_the_types_schema_is_told_with_its_place(
    acme, event_type, changes, message
):
    acme.create()
    data = dict(EVENT_TYPES[event_type].sample) | changes if changes else {}
    with pytest.raises(CommandError) as caught:
        emit(event_type, "--data", dumps(data))
    first, *faults, last = str(caught.value).splitlines()
    assert first == f"--data: not the data of {event_type}"
    assert len(faults) == len(message)
    for fault, words in zip(faults, message, strict=True):
        assert fault.startswith(f"  {words}")
    assert last == "Nothing was published."
    assert not Event.objects.exists()
