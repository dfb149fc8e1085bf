"""Documents as forms: what a file and its fields tell, and every form that is refused."""

from typing import Any

import pytest

from gateway.models import Document
from tests.gateway.client import INGEST, nothing_stored, upload

pytestmark = pytest.mark.django_db


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
