"""Events that an operator emits: every defined type, with given data or the sample."""

from io import StringIO

import orjson
import pytest
from django.core.management import CommandError, call_command

from gateway.event_types import EVENT_TYPES
from tests.gateway.client import stripe_accepts
from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from webhooks_core.models import Event

pytestmark = pytest.mark.django_db


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


def test_emitted_data_may_be_given_and_come_from_a_file(tmp_path):
    number = "123456789012345678901234567890"
    emit("drift.detected", "--data", f'{{"value":{number}}}')
    file = tmp_path / "data.json"
    file.write_text('{"value":2.5}')
    emit("drift.detected", "--file", str(file))
    one, two = Event.objects.order_by("id").values_list("body", flat=True)
    assert f'"data":{{"value":{number}}}'.encode() in bytes(one)
    assert b'"data":{"value":2.5}' in bytes(two)


@pytest.mark.parametrize(
    ("event_type", "arguments", "words"),
    [
        ("webhook.test", (), "invalid choice"),
        ("drift.detected", ("--tenant", "a b"), "tenant: "),
        ("drift.detected", ("--file", "/none"), "No such file"),
        ("drift.detected", ("--data", "{"), "--data: not JSON"),
        ("drift.detected", ("--data", "[]"), "a JSON object"),
        ("drift.detected", ("--data", '{"a": "\ud800"}'), "--data: not JSON"),
        (
            "drift.detected",
            ("--data", '{"a":' + "[" * 200 + "]" * 200 + "}"),
            "at most 100 levels",
        ),
    ],
)
def test_what_cannot_be_emitted_is_told_and_stores_nothing(
    event_type, arguments, words
):
    with pytest.raises(CommandError, match=words):
        emit(event_type, *arguments)
    assert not Event.objects.exists()
