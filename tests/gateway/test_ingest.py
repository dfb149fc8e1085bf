"""The ingest route: what is stored, what is announced, what is refused."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import IntegrityError
from hypothesis import given
from hypothesis import strategies as st

from gateway import ingest, serializers
from gateway.chat.core import json_numbers
from gateway.models import Chunk, Document
from tests.gateway.client import INGEST, JSON, PATH, Api, nothing_stored, upload
from tests.threads import at_once
from webhooks_core.models import Event
from webhooks_core.times import iso
from webhooks_core.web.json_values import MAX_VALUES

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
        "chunk_count": 1,
        "metadata": {"source": "intranet", "pages": [1, 2]},
        "created_at": iso(row.created_at),
    }
    assert list(result.items()) == list(expected.items())
    assert (row.tenant, row.principal, row.content) == ("acme", "ada", text)
    [chunk] = Chunk.objects.all()
    assert (str(chunk), chunk.text) == ("chunk 1", text)
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
    upload = SimpleUploadedFile("x.txt", b"The text.", "text/plain")
    posted = acme.client.post(INGEST, {"file": upload})
    assert (posted.status_code, posted.json()) == (200, first.json())
    assert Document.objects.count() == Event.objects.count() == 1


def test_another_tenant_has_documents_of_its_own(acme, globex):
    mine, theirs = acme.ingest("The text."), globex.ingest("The text.")
    assert (mine.status_code, theirs.status_code) == (201, 201)
    assert mine.json()["document_id"] != theirs.json()["document_id"]


@pytest.mark.django_db(transaction=True)
def test_of_eight_requests_with_one_text_at_once_one_is_first():
    def send() -> Any:
        return Api(tenant="acme", principal="ada").ingest("The text.")

    answers = at_once(8, send)
    assert sorted(response.status_code for response in answers) == [200] * 7 + [201]
    assert len({response.content for response in answers}) == 1
    assert Document.objects.count() == Event.objects.count() == 1


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


MANY = [(unit, 20_000) for unit in (b"1", b"[]", b"{}", b'""', b"1.5", b'{"a":1}')]


@pytest.mark.parametrize(("unit", "count"), [*MANY, (b"1", MAX_VALUES)])
def test_metadata_of_many_values_is_refused_before_it_is_walked_or_written(
    acme, monkeypatch, unit, count
):
    # orjson reserves 256 bytes for each member, and ends the process when it gets none.
    def fail(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(serializers, "is_deeper", fail)
    monkeypatch.setattr(json_numbers, "dumps", fail)
    metadata = b'{"a":{"b":[%s1]}}' % ((unit + b",") * count)
    responses = [acme.call("POST", INGEST, b'{"text":"x","metadata":%s}' % metadata)]
    if count < MAX_VALUES:
        form = {"text": "x", "metadata": metadata.decode()}
        responses.append(acme.client.post(INGEST, form))
    for response in responses:
        assert response.status_code == 400
        assert response.json() == {"detail": "metadata is over 16384 bytes."}
    assert nothing_stored()


def test_metadata_with_many_names_is_refused(acme):
    metadata = {f"name {number}": 1 for number in range(100_000)}
    response = acme.ingest(metadata=metadata)
    assert response.json() == {"detail": "metadata is over 16384 bytes."}


def test_metadata_may_have_just_as_many_bytes_as_are_allowed(acme):
    ones = [1] * 8187 + [11]
    assert len(orjson.dumps({"a": ones})) == 16_384
    assert acme.ingest(metadata={"a": ones}).status_code == 201
    assert acme.ingest("Another.", metadata={"ab": ones}).status_code == 400


NUMBERS = (
    b"18446744073709551615,18446744073709551616,-9223372036854775809,"
    b"123456789012345678901234567890,0.1,1.10,1E5,-0.0,12345678901234567890.5"
)


def test_numbers_of_metadata_keep_every_digit(acme):
    subscription = acme.create()
    metadata = b'{"a":[%s],"b":{"c":[%s]}}' % (NUMBERS, NUMBERS)
    part = b'"metadata":%s' % metadata
    body = b'{"text":"x",%s}' % part
    responses = [
        acme.call("POST", INGEST, body),
        acme.call("POST", INGEST, body),
        acme.client.post(INGEST, {"text": "y", "metadata": metadata.decode()}),
    ]
    assert [response.status_code for response in responses] == [201, 200, 201]
    assert all(part in response.content for response in responses)
    bodies = Event.objects.values_list("body", flat=True)
    assert len(bodies) == 2
    assert all(part in bytes(body) for body in bodies)
    assert len(acme.deliveries(subscription)) == 2


@pytest.mark.parametrize(
    "number", [b"1e400", b"-1e400", b"9" * 400, b"NaN", b"Infinity"]
)
def test_a_number_beyond_those_of_a_double_is_no_json_here(acme, number):
    response = acme.call("POST", INGEST, b'{"text":"x","metadata":{"a":%s}}' % number)
    assert response.status_code == 400
    assert "not JSON" in response.json()["detail"]


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


@pytest.mark.parametrize(
    "kind", ["application/json", "multipart/form-data; boundary=x"]
)
def test_an_encoded_body_is_415(acme, kind):
    headers = {"Content-Encoding": "gzip"}
    response = acme.call(
        "POST", INGEST, {"text": "x"}, content_type=kind, headers=headers
    )
    assert (response.status_code, list(response.json())) == (415, ["detail"])
    assert not Document.objects.exists()


def test_a_text_over_the_limit_is_413_whichever_way_it_comes(acme, settings):
    settings.GATEWAY_INGEST_MAX_BYTES = 1000
    for text in ("x" * 1001, "é" * 501, "x" * 70_000):
        answers = [
            acme.ingest(text),
            acme.client.post(INGEST, {"file": upload(text.encode())}),
            acme.client.post(INGEST, {"text": text}),
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
    meta = {"CONTENT_TYPE": JSON, "CONTENT_LENGTH": "9" * 30}
    response = acme.call("POST", PATH, **meta)
    assert (response.status_code, list(response.json())) == (413, ["detail"])


@pytest.mark.spec("gateway", "payload size")
def test_ten_megabytes_are_accepted_and_a_byte_more_is_not(acme):
    content = b"word " * (2 * 1024 * 1024)
    assert len(content) == 10 * 1024 * 1024
    response = acme.client.post(INGEST, {"file": upload(content)})
    assert response.status_code == 201
    assert response.json()["size_bytes"] == len(content)
    assert Chunk.objects.count() == response.json()["chunk_count"]
    more = acme.client.post(INGEST, {"file": upload(content + b"x")})
    assert more.status_code == 413


def test_html_is_split_as_what_people_read(acme):
    html = (
        "<html><head><style>p {}</style></head><body><h1>A</h1><p>B &amp; C</p></body>"
    )
    acme.ingest(html, content_type="text/html")
    assert Document.objects.get().content == html
    [chunk] = Chunk.objects.all()
    assert "B & C" in chunk.text
    assert "<p>" not in chunk.text
    assert "p {}" not in chunk.text


@pytest.mark.parametrize("html", ["<", "<script>x</script>", "<" * 5000, "<b>" * 5000])
def test_html_that_cannot_be_read_is_split_as_it_is(acme, html):
    response = acme.ingest(html, content_type="text/html")
    assert response.status_code == 201
    assert response.json()["chunk_count"] == Chunk.objects.count() > 0


def test_html_of_megabytes_is_split_as_it_is(acme, monkeypatch):
    monkeypatch.setattr("gateway.ingest.MAX_HTML_CHARACTERS", 8)
    acme.ingest("<p>A</p>", content_type="text/html")
    acme.ingest("<p>AB</p>", content_type="text/html")
    texts = Chunk.objects.order_by("id").values_list("text", flat=True)
    assert [text.strip() for text in texts] == ["A", "<p>AB</p>"]


def test_html_that_would_grow_without_limit_is_split_as_it_is(acme):
    text = "<blockquote>" * 300 + "<p>x" * 300
    acme.ingest(text, content_type="text/html")
    parts = Chunk.objects.order_by("id").values_list("text", flat=True)
    assert "".join("".join(parts).split()) == text


def test_a_failure_to_announce_stores_nothing(acme, monkeypatch):
    def fail(**_: Any) -> None:
        raise RuntimeError("away")

    monkeypatch.setattr("webhooks_core.publishing.publish", fail)
    assert acme.ingest().status_code == 500
    assert nothing_stored()


def test_a_constraint_that_fails_for_another_reason_is_no_repetition(acme, monkeypatch):
    def fail(**_: Any) -> None:
        raise IntegrityError

    monkeypatch.setattr("webhooks_core.publishing.publish", fail)
    assert acme.ingest().status_code == 500
    assert nothing_stored()


# ── Chunks ──────────────────────────────────────────────────────────────────────────


@given(st.text(), st.integers(1, 50))
def test_chunks_are_the_text_and_none_is_empty_or_too_long(text, maximum):
    parts = list(ingest.split(text, maximum=maximum))
    assert "".join(parts) == text
    assert all(0 < len(part) <= maximum for part in parts)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("aaa bbb ccc", "aaa bbb "),
        ("aaa. bb ccc", "aaa. bb "),
        ("aaaaa. b cc", "aaaaa. "),
        ("aaaa b.\nccc", "aaaa b.\n"),
        ("aaaaa\n\nb ccc", "aaaaa\n\n"),
        ("aaaaaaaaaaaa", "aaaaaaaa"),
        ("a aaaaaaaaaa", "a aaaaaa"),
        ("aaaa\n# heading", "aaaa\n"),
    ],
)
def test_a_chunk_ends_at_the_best_break_in_its_second_half(text, first):
    assert next(ingest.split(text, maximum=8)) == first
