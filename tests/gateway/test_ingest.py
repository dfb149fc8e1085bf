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


# ── Forms: what a file and its fields tell ──────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "declared", "expected"),
    [
        ("a.MD", "application/octet-stream", "text/markdown"),
        ("a.bin", "", "text/plain"),
        ("a.txt", "TEXT/HTML; Charset=UTF-8", "text/html"),
    ],
)
def test_a_file_tells_title_and_type(acme, name, declared, expected):
    form = {"file": upload("Häfen".encode(), name, declared)}
    response = acme.client.post(INGEST, form)
    assert response.status_code == 201
    assert response.json()["title"] == name
    assert response.json()["content_type"] == expected
    assert Document.objects.get().content == "Häfen"


def test_fields_beside_a_file_win(acme):
    response = acme.client.post(
        INGEST,
        {
            "file": upload(),
            "title": "Mine",
            "content_type": "text/markdown",
            "metadata": '{"a": 1}',
        },
    )
    result = response.json()
    assert (result["title"], result["content_type"]) == ("Mine", "text/markdown")
    assert result["metadata"] == {"a": 1}


def test_a_form_may_hold_the_text_as_a_field(acme):
    response = acme.client.post(INGEST, {"text": "x", "title": "t"})
    assert response.status_code == 201
    assert response.json()["content_type"] == "text/plain"


FORMS: list[tuple[str, dict[str, Any], str]] = [
    ("no document", {"title": "x"}, "text is required"),
    ("two files", {"file": [upload(), upload()]}, "Send one document"),
    ("another name", {"document": upload()}, "Send one document"),
    ("file and text", {"file": upload(), "text": "x"}, "Send one document"),
    ("not UTF-8", {"file": upload(b"\xff\xfe")}, "not UTF-8"),
    ("a picture", {"file": upload(b"x", "a.png", "image/png")}, "content_type"),
    ("metadata", {"file": upload(), "metadata": "{"}, "metadata is not JSON"),
]


@pytest.mark.parametrize(("_case", "form", "words"), FORMS)
def test_a_bad_form_is_400_and_stores_nothing(acme, _case, form, words):
    response = acme.client.post(INGEST, form)
    assert (response.status_code, list(response.json())) == (400, ["detail"])
    assert words in response.json()["detail"]
    assert nothing_stored()


def part(name: str, body: bytes, more: bytes = b"") -> bytes:
    disposition = b'Content-Disposition: form-data; name="%s"' % name.encode()
    return b"--x\r\n%s%s\r\n\r\n%s\r\n" % (disposition, more, body)


FORM = "multipart/form-data; boundary=x"
BASE64 = b'; filename="a"\r\nContent-Transfer-Encoding: base64'
NOT_UTF_8 = b"caf\xe9"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data", b"x"),
        (FORM, b"--x\r\n"),
        (FORM, part("file", b"!", BASE64) + b"--x--\r\n"),
        (FORM, b"".join(part(f"a{n}", b"1") for n in range(1100))),
    ],
)
def test_a_malformed_form_is_400(acme, content_type, body):
    response = acme.call("POST", INGEST, body, content_type=content_type)
    assert (response.status_code, list(response.json())) == (400, ["detail"])
    assert nothing_stored()


def test_a_form_field_over_the_frameworks_limit_is_413(acme):
    response = acme.client.post(INGEST, {"text": "x" * 1_100_000})
    assert response.status_code == 413
    assert "as a file" in response.json()["detail"]


@pytest.mark.parametrize("name", ["text", "title", "content_type", "metadata"])
def test_a_field_that_is_not_utf_8_is_refused_and_not_mended(acme, name):
    fields = {"text": b"A text."} | {name: NOT_UTF_8}
    body = b"".join(part(key, value) for key, value in fields.items()) + b"--x--\r\n"
    response = acme.call("POST", INGEST, body, content_type=FORM)
    assert response.status_code == 400
    assert f"{name} is not UTF-8" in response.json()["detail"]
    assert nothing_stored()


@pytest.mark.parametrize("charset", ["latin-1", "nonsense"])
def test_a_charset_that_is_claimed_never_counts(acme, charset):
    part_head = f'; filename="a.txt"\r\nContent-Type: text/plain; charset={charset}'
    for content, status in ((NOT_UTF_8, 400), ("café".encode(), 201)):
        body = part("file", content, part_head.encode()) + b"--x--\r\n"
        response = acme.call("POST", INGEST, body, content_type=FORM)
        assert response.status_code == status
    assert Document.objects.get().content == "café"
