"""The ingest route: what is stored, what is announced, what is refused."""

import hashlib
from typing import Any

import orjson
import pytest

from gateway.models import Document
from tests.gateway.client import INGEST, JSON, nothing_stored, upload
from webhooks_core.models import Event
from webhooks_core.times import iso

pytestmark = pytest.mark.django_db


@pytest.mark.spec("gateway", "ingest.completed: data is a dump of the ingest result")
@pytest.mark.spec("gateway", "ingest.completed: the ingest route emits")
def test_a_document_is_stored_answered_and_announced_alike(acme):
    subscription = acme.create()
    text = "# Häfen\n\nSchiffe weichen aus. ⚓"
    response = acme.ingest(
        text,
        title="Harbour",
        content_type="text/markdown",
        metadata={"source": "intranet", "pages": [1, 2]},
    )
    assert response.status_code == 201
    result = response.json()
    row = Document.objects.get()
    expected = {
        "document_id": row.public_id,
        "title": "Harbour",
        "content_type": "text/markdown",
        "checksum": "sha256:" + hashlib.sha256(text.encode()).hexdigest(),
        "size_bytes": len(text.encode()),
        "characters": len(text),
        "metadata": {"source": "intranet", "pages": [1, 2]},
        "created_at": iso(row.created_at),
    }
    assert list(result.items()) == list(expected.items())
    assert (row.tenant, row.principal, row.content) == ("acme", "ada", text)
    event = Event.objects.get()
    assert orjson.loads(bytes(event.body))["data"] == result
    assert (event.type, event.owner) == ("ingest.completed", "acme")
    [row] = acme.deliveries(subscription)
    assert row["event_id"] == event.public_id


def test_the_same_text_again_answers_the_first_result_and_emits_nothing(acme):
    acme.create()
    first = acme.ingest("The text.", title="first")
    again = acme.ingest("The text.", title="second", content_type="text/html")
    assert (again.status_code, again.json()) == (200, first.json())
    posted = acme.client.post(INGEST, {"file": upload(b"The text.")})
    assert (posted.status_code, posted.json()) == (200, first.json())
    assert Document.objects.count() == Event.objects.count() == 1


def test_another_tenant_has_documents_of_its_own(acme, globex):
    mine, theirs = acme.ingest("The text."), globex.ingest("The text.")
    assert (mine.status_code, theirs.status_code) == (201, 201)
    assert mine.json()["document_id"] != theirs.json()["document_id"]


def test_whoever_loses_the_race_answers_with_the_winners_document(acme, monkeypatch):
    first = acme.ingest("The text.")
    looks = []

    def first_look_sees_nothing(rows: Any) -> Any:
        looks.append(rows)
        return rows.none() if len(looks) == 1 else rows

    monkeypatch.setattr(
        "gateway.models.DocumentQuerySet.without_text",
        first_look_sees_nothing,
    )
    again = acme.ingest("The text.")
    assert len(looks) == 2
    assert (again.status_code, again.json()) == (200, first.json())
    assert Event.objects.count() == 1


@pytest.mark.parametrize("value", [[1] * 8200, "x" * 16_384, {"é": "é" * 8192}])
def test_metadata_over_the_limit_is_refused(acme, value):
    response = acme.ingest(metadata={"a": value})
    assert response.json() == {"detail": "metadata is over 16384 bytes."}
    form = {"file": upload(), "metadata": orjson.dumps({"a": value}).decode()}
    assert acme.client.post(INGEST, form).status_code == 400
    assert nothing_stored()


NUMBERS = b"18446744073709551616,-9223372036854775809,123456789012345678901234567890"


def test_integers_of_metadata_keep_every_digit(acme):
    metadata = b'{"a":[%s],"b":{"c":[%s]}}' % (NUMBERS, NUMBERS)
    part = b'"metadata":%s' % metadata
    form = {"file": upload(), "metadata": metadata.decode()}
    responses = [
        acme.call("POST", INGEST, b'{"text":"y",%s}' % part),
        acme.call("POST", INGEST, b'{"text":"y"}'),
        acme.client.post(INGEST, form),
    ]
    assert [response.status_code for response in responses] == [201, 200, 201]
    assert all(part in response.content for response in responses)
    bodies = Event.objects.values_list("body", flat=True)
    assert [part in bytes(body) for body in bodies] == [True, True]


def test_metadata_may_be_nested_but_not_without_end(acme):
    def nested(levels: int) -> bytes:
        inner = b"[" * (levels - 1) + b"]" * (levels - 1)
        return b'{"text": "%d", "metadata": {"a": %s}}' % (levels, inner)

    assert acme.call("POST", INGEST, nested(32)).status_code == 201
    for levels in (33, 400):
        response = acme.call("POST", INGEST, nested(levels))
        assert response.status_code == 400
        assert "deeper than 32" in response.json()["detail"]
    assert Document.objects.count() == 1


@pytest.mark.spec("gateway", "payload size")
def test_a_text_over_the_limit_is_413_whichever_way_it_comes(acme, settings):
    assert settings.GATEWAY_INGEST_MAX_BYTES == 10 * 1024 * 1024
    settings.GATEWAY_INGEST_MAX_BYTES = 1000
    for text in ("x" * 1001, "é" * 501, "x" * 70_000):
        answers = [
            acme.ingest(text),
            acme.client.post(INGEST, {"file": upload(text.encode())}),
        ]
        for response in answers:
            assert (response.status_code, list(response.json())) == (413, ["detail"])
    assert nothing_stored()
    assert acme.ingest("é" * 500).status_code == 201


@pytest.mark.parametrize("content_type", [JSON, "multipart/form-data; boundary=x"])
def test_a_body_that_the_server_did_not_take_in_is_413(acme, content_type):
    meta = {"CONTENT_TYPE": content_type, "CONTENT_LENGTH": "40000000"}
    response = acme.call("POST", INGEST, **meta)
    assert (response.status_code, list(response.json())) == (413, ["detail"])
    assert "is over 31522816 bytes" in response.json()["detail"]


def test_a_failure_to_announce_stores_nothing(acme, monkeypatch):
    def fail(**_: Any) -> None:
        raise RuntimeError("away")

    monkeypatch.setattr("webhooks_core.publishing.publish", fail)
    assert acme.ingest().status_code == 500
    assert nothing_stored()
