"""The ingest route: what is stored, what is announced, what is refused; JSON and forms."""

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


def test_the_same_text_again_answers_the_first_result_and_emits_nothing(acme, globex):
    acme.create()
    first = acme.ingest("The text.", title="first")
    again = acme.ingest("The text.", title="second", content_type="text/html")
    assert (again.status_code, again.json()) == (200, first.json())
    posted = acme.client.post(INGEST, {"file": upload(b"The text.")})
    assert (posted.status_code, posted.json()) == (200, first.json())
    assert Document.objects.count() == Event.objects.count() == 1
    other = globex.ingest("The text.")  # of another tenant
    assert other.status_code == 201
    assert other.json()["document_id"] != first.json()["document_id"]


def test_whoever_loses_the_race_answers_with_the_winners_document(acme, monkeypatch):
    first = acme.ingest("The text.")
    looks = [None, Document.objects.get()]  # the first sees nothing
    monkeypatch.setattr("gateway.ingest._known", lambda *_: looks.pop(0))
    again = acme.ingest("The text.")
    assert looks == []
    assert (again.status_code, again.json()) == (200, first.json())
    assert Event.objects.count() == 1


@pytest.mark.parametrize("value", [[1] * 8200, "x" * 16_384, {"é": "é" * 8192}])
def test_metadata_over_the_limit_is_refused(acme, value):
    response = acme.ingest(metadata={"a": value})
    assert response.json() == {"detail": "metadata is over 16384 bytes."}
    form = {"file": upload(), "metadata": orjson.dumps({"a": value}).decode()}
    assert acme.client.post(INGEST, form).status_code == 400
    assert nothing_stored()


def test_metadata_is_nested_as_deep_as_an_event_can_be_written(acme):
    def nested(levels: int) -> bytes:
        return b'{"text": "x", "metadata": {"a": %s}}' % (b"[" * levels + b"]" * levels)

    refused = acme.call("POST", INGEST, nested(252))
    assert refused.json() == {"detail": "metadata is nested too deeply."}
    assert nothing_stored()
    assert acme.call("POST", INGEST, nested(250)).status_code == 201


def test_json_with_too_many_values_is_not_read(acme):
    values = b",".join([b"1"] * 1_000_001)
    refused = acme.call("POST", INGEST, b'{"text": "x", "a": [%s]}' % values)
    assert refused.json()["detail"].startswith("The body is not usable: more than")


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


# ── Forms: what a file and its fields tell ──────────────────────────────────────────


FIELDS = {"title": "Mine", "content_type": "text/markdown", "metadata": '{"a": 1}'}


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"file": upload(b"x", "a.md", "application/octet-stream")}, ["a.md", "plain"]),
        ({"file": upload(b"x", "a.bin", "")}, ["a.bin", "plain"]),
        ({"file": upload(b"x", "a", "TEXT/HTML; Charset=UTF-8")}, ["a", "html"]),
        ({"file": upload()} | FIELDS, ["Mine", "markdown"]),
        ({"text": "x"} | FIELDS, ["Mine", "markdown"]),
        ({"text": "x"}, ["", "plain"]),
    ],
)
def test_a_file_stands_in_for_fields_that_are_absent(acme, form, expected):
    response = acme.client.post(INGEST, form)
    assert response.status_code == 201
    result = response.json()
    assert [result["title"], result["content_type"][5:]] == expected
    assert result["metadata"] == ({"a": 1} if "metadata" in form else {})
    assert Document.objects.get().content == "x"


def part(body: bytes, more: bytes = b"") -> bytes:
    disposition = b'Content-Disposition: form-data; name="file"; filename="a"'
    return b"--x\r\n%s%s\r\n\r\n%s\r\n--x--\r\n" % (disposition, more, body)


FORM = "multipart/form-data; boundary=x"
BASE64 = b"\r\nContent-Transfer-Encoding: base64"


@pytest.mark.parametrize(
    ("content_type", "body", "status", "words"),
    [
        ("multipart/form-data", b"x", 400, ""),
        (FORM, b"--x\r\n", 400, "text is required"),
        (FORM, part(b"!", BASE64), 400, ""),
        (FORM, part(b"\xff\xfe"), 400, "not UTF-8"),
        (FORM, part(b"x", b"\r\nContent-Type: image/png"), 400, "content_type must"),
        (FORM, part(b"x").replace(b"file", b"document", 1), 400, "text is required"),
        (None, {"text": "x", "metadata": "{"}, 400, "metadata must be an object"),
        (None, {"text": "x" * 1_100_000}, 413, "too large"),
    ],
)
def test_a_bad_form_is_refused_and_stores_nothing(
    acme, content_type, body, status, words
):
    response = (
        acme.call("POST", INGEST, body, content_type=content_type)
        if content_type
        else acme.client.post(INGEST, body)
    )
    assert (response.status_code, list(response.json())) == (status, ["detail"])
    assert words in response.json()["detail"]
    assert nothing_stored()
