"""What the golden file of tests/contract cannot hold of bodies: bytes, sizes, headers."""

import gzip
from typing import Any

import orjson
import pytest

from tests.products.product import OTHER_URL, URL

pytestmark = pytest.mark.django_db

LIMIT = 65_536
METHODS = ("POST", "PATCH")
BAD_JSON = {
    "NaN": b'{"url": NaN}',
    "infinity": b'{"url": 1e999}',
    "not UTF-8": b'{"url": "\xff"}',
    "UTF-16": '{"url": "x"}'.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf{}",
    "raw NUL": b'{"url": "\0"}',
    "a lone surrogate": b'{"url": "\\ud800"}',
    "an encoded surrogate": b'{"url": "\xed\xa0\x80"}',
    "deep arrays": b"[" * 60_000,
    "deep objects": b'{"a":' * 10_000,
    "deep arrays in a field": b'{"events": ' + b"[" * 2000 + b"]" * 2000 + b"}",
    "two values": b"{}{}",
    "null": b"null",
}


@pytest.fixture
def refused(mine, product):
    """Send a body to create and to update; both are refused, and nothing has changed.

    Returns the messages.
    """
    addresses = {"POST": "", "PATCH": f"/{mine.new_id()}"}
    before = mine.get()

    def send(status: int, body: Any, methods=METHODS, **options: Any) -> list[Any]:
        responses = [
            mine.call(method, addresses[method], body, **options) for method in methods
        ]
        assert mine.get() == before
        return [(product.error(response, status), response) for response in responses]

    return send


@pytest.mark.parametrize("body", BAD_JSON.values(), ids=BAD_JSON)
@pytest.mark.spec("recording", "malformed JSON is 400; an empty PATCH body too")
def test_what_is_not_a_json_object_is_refused(refused, body):
    words = ("The body is empty", "The body is not JSON", "must be a JSON object")
    for message, _ in refused(400, body):
        assert any(text in message for text in words)


@pytest.mark.parametrize(
    "media_type", ["", "text/json", "application/*", "application/json, text/plain"]
)
@pytest.mark.spec("recording", "wrong media type 415 unsupported_media_type")
def test_another_media_type_is_refused(refused, media_type):
    refused(415, {"url": OTHER_URL}, content_type=media_type)


@pytest.mark.parametrize("coding", ["gzip", "identity, gzip"])
def test_an_encoded_body_is_refused(refused, coding):
    body = gzip.compress(orjson.dumps({"url": OTHER_URL}))
    for message, response in refused(415, body, headers={"Content-Encoding": coding}):
        assert "Content-Encoding" in message
        assert response["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("size", [LIMIT + 1, 3_000_000])
@pytest.mark.spec("recording", "body over the limit 413 payload_too_large")
def test_a_body_over_the_limit_is_refused(refused, size):
    refused(413, orjson.dumps({"url": OTHER_URL}).ljust(size))


@pytest.mark.parametrize(
    ("body", "options"),
    [
        (orjson.dumps({"url": URL}).ljust(LIMIT), {}),
        (b'{"url":"x","url":"%s"}' % URL.encode(), {}),  # the last one counts
        ({"url": URL, "unknown": 1}, {"headers": {"Content-Encoding": "identity"}}),
        ({"url": URL}, {"content_type": "APPLICATION/JSON; charset=utf-8"}),
    ],
)
def test_what_is_read(mine, body, options):
    response = mine.call("POST", "", body, **options)
    assert (response.status_code, response.json()["url"]) == (201, URL)


@pytest.mark.parametrize(("method", "tail"), [("POST", "/test"), ("DELETE", "")])
@pytest.mark.spec("recording", "no body is read on DELETE and /test")
def test_delete_and_test_read_no_body(mine, method, tail):
    address = f"/{mine.new_id()}{tail}"
    response = mine.call(method, address, b"\xff[[[", content_type="text/plain")
    assert response.status_code < 300
