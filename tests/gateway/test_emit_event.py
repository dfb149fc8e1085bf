"""Events that an operator emits: every defined type, data that fits its schema, nothing else."""

from __future__ import annotations

from io import StringIO
from typing import Any

import orjson
import pytest
from django.core.management import CommandError, call_command

from gateway.webhooks import EVENT_TYPES
from tests.gateway.client import Api, stripe_accepts
from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from webhooks_core.models import Event
from webhooks_core.web.json_values import MAX_VALUES

pytestmark = pytest.mark.django_db(transaction=True)


DRIFT = dict(EVENT_TYPES["drift.detected"].sample)


def dumps(value: Any) -> str:
    return orjson.dumps(value).decode()


def emit(*arguments: str) -> str:
    out = StringIO()
    call_command("emit_event", *arguments, stdout=out)
    return out.getvalue().strip()


@pytest.mark.spec("gateway", "Events: every type")
@pytest.mark.parametrize(
    "event_type", [item for item in EVENT_TYPES if item != "webhook.test"]
)
def test_an_operator_can_emit_every_defined_type(acme, event_type):
    with receiver(204) as subscriber:
        subscription = acme.create(subscriber.url, event_types=[event_type])
        event_id = emit(event_type, "--tenant", "acme")
        dispatch()
    body = orjson.loads(subscriber.requests[0].body)
    assert (body["id"], body["type"], body["tenant_id"]) == (
        event_id,
        event_type,
        "acme",
    )
    assert body["principal_id"] == "system"
    assert body["data"] == EVENT_TYPES[event_type].sample
    assert body["request_id"]
    assert len(body["trace_id"]) == 32
    assert stripe_accepts(subscriber.requests[0], subscription["secret"])


def test_emitted_data_may_be_given_and_come_from_a_file(acme, tmp_path):
    acme.create()
    one, two = (dumps(DRIFT | {"value": n, "more": [n]}) for n in (1, 2.5))
    emit("drift.detected", "--tenant", "acme", "--data", one)
    file = tmp_path / "data.json"
    file.write_text(two)
    emit("drift.detected", "--tenant", "acme", "--file", str(file))
    bodies = Event.objects.order_by("id").values_list("body", flat=True)
    assert [orjson.loads(bytes(body))["data"] for body in bodies] == [
        DRIFT | {"value": 1, "more": [1]},
        DRIFT | {"value": 2.5, "more": [2.5]},
    ]


def test_the_numbers_of_data_keep_every_digit():
    data = DRIFT | {"more": "MORE"}
    text = (
        orjson.dumps(data).decode().replace('"MORE"', "123456789012345678901234567890")
    )
    emit("drift.detected", "--tenant", "acme", "--data", text)
    assert b":123456789012345678901234567890" in bytes(Event.objects.get().body)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["webhook.test", "--tenant", "acme"], "invalid choice"),
        (["unknown", "--tenant", "acme"], "invalid choice"),
        (["drift.detected"], "--tenant"),
        (["drift.detected", "--tenant", "a b"], "tenant: "),
        (["drift.detected", "--tenant", "acme", "--data", "{"], "--data: not JSON"),
        (["drift.detected", "--tenant", "acme", "--data", "[]"], "a JSON object"),
        (
            [
                "drift.detected",
                "--tenant",
                "acme",
                "--data",
                "[" + "1," * MAX_VALUES + "1]",
            ],
            "more than 1000000 values",
        ),
        (
            ["drift.detected", "--tenant", "acme", "--data", '{"a": "\ud800"}'],
            "--data: not JSON",
        ),
        (
            ["drift.detected", "--tenant", "acme", "--data", '{"a": 1e400}'],
            "--data: not JSON",
        ),
        (["drift.detected", "--tenant", "acme", "--file", "/none"], "No such file"),
        (
            [
                "drift.detected",
                "--tenant",
                "acme",
                "--data",
                '{"a":' + "[" * 200 + "]" * 200 + "}",
            ],
            "deeper",
        ),
        (
            ["drift.detected", "--tenant", "acme", "--data", "{}", "--file", "x"],
            "not allowed",
        ),
    ],
)
def test_what_cannot_be_emitted_is_told_and_stores_nothing(acme, arguments, words):
    acme.create()
    with pytest.raises(CommandError, match=words):
        emit(*arguments)
    assert not Event.objects.exists()


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
        emit(event_type, "--tenant", "acme", "--data", dumps(data))
    first, *faults, last = str(caught.value).splitlines()
    assert first == f"--data: not the data of {event_type}"
    assert len(faults) == len(message)
    for fault, words in zip(faults, message, strict=True):
        assert fault.startswith(f"  {words}")
    assert last == "Nothing was published."
    assert not Event.objects.exists()


def test_a_fault_in_a_large_value_is_told_in_short(acme):
    data = dumps(DRIFT | {"value": "x" * 100_000})
    with pytest.raises(CommandError) as caught:
        emit("drift.detected", "--tenant", "acme", "--data", data)
    assert len(str(caught.value)) < 400


def test_other_tenants_see_nothing_of_an_emitted_event(acme, globex):
    subscription = globex.create()
    emit("drift.detected", "--tenant", "acme")
    assert globex.deliveries(subscription) == []
    assert Api(tenant="acme", principal="x").get() == {"items": []}
