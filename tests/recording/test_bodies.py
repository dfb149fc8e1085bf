"""Every field of every body with what strangers may send; nothing is ever written."""

from __future__ import annotations

import gzip
from typing import Any

import orjson
import pytest

from tests.recording.conftest import OTHER_URL, URL, error_of
from webhooks_core.models import Endpoint

pytestmark = pytest.mark.django_db

TOO_LONG = 65_537
WRONG_URLS: list[Any] = [None, 1, 1.5, True, False, [], {}, ["x"], "\0", "x", " "]
WRONG_EVENTS: list[Any] = [
    None,
    1,
    True,
    "",
    "summary.completed",
    {},
    {"summary.completed": 1},
    [None],
    [1],
    [True],
    [[]],
    [["summary.completed"]],
    [{}],
    [""],
    ["nope"],
    ["Summary.Completed"],
    ["summary.completed\0"],
    ["summary.completed", "nope"],
    ["x" * 60_000],
]
BAD_JSON = [
    ("empty", b""),
    ("white space", b"  "),
    ("not JSON", b"url=https://example.com"),
    ("unfinished", b'{"url": '),
    ("trailing comma", b'{"url": "x",}'),
    ("two values", b"{}{}"),
    ("single quotes", b"{'url': 'x'}"),
    ("NaN", b'{"url": NaN}'),
    ("infinity", b'{"url": 1e999}'),
    ("not UTF-8", b'{"url": "\xff"}'),
    ("UTF-16", '{"url": "x"}'.encode("utf-16")),
    ("a byte order mark", b"\xef\xbb\xbf{}"),
    ("raw NUL", b'{"url": "\0"}'),
    ("a lone surrogate", b'{"url": "\\ud800"}'),
    ("an encoded surrogate", b'{"url": "\xed\xa0\x80"}'),
    ("a lone surrogate in a name", b'{"\\udfff": 1}'),
    ("deep arrays", b"[" * 60_000),
    ("deep objects", b'{"a":' * 10_000),
    ("closed deep arrays", b"[" * 30_000 + b"]" * 30_000),
    ("deep arrays in a field", b'{"events": ' + b"[" * 2000 + b"]" * 2000 + b"}"),
    ("an array", b"[]"),
    ("a string", b'"x"'),
    ("a number", b"1"),
    ("null", b"null"),
    ("true", b"true"),
]
WITH_BODY = ["POST", "PATCH"]


@pytest.fixture
def send_body(api):
    """Send a body to create or update; afterwards nothing must have changed."""
    endpoint_id = api.create()["endpoint_id"]
    paths = {"POST": "webhooks", "PATCH": f"webhooks/{endpoint_id}"}
    before = api.get("webhooks").json()

    def send(method, body, **options):
        return api.send(method, paths[method], body, **options)

    yield send
    assert api.get("webhooks").json() == before
    assert Endpoint.objects.count() == 1


@pytest.mark.parametrize("method", WITH_BODY)
@pytest.mark.parametrize("url", WRONG_URLS, ids=repr)
def test_a_wrong_url_is_refused(send_body, method, url):
    body = {"url": url, "events": ["summary.completed"]}
    assert "url" in error_of(send_body(method, body), 400, "bad_request")


@pytest.mark.parametrize("body", [{}, {"events": []}, {"url": ""}], ids=repr)
@pytest.mark.spec("recording", "url is required at create")
def test_create_needs_a_url(send_body, body):
    assert "url" in error_of(send_body("POST", body), 400, "bad_request")


@pytest.mark.parametrize("method", WITH_BODY)
@pytest.mark.parametrize("events", WRONG_EVENTS, ids=lambda value: repr(value)[:40])
@pytest.mark.spec("recording", "an unknown event type yields 400 bad_request")
def test_wrong_events_are_refused(send_body, method, events):
    body = {"url": OTHER_URL, "events": events}
    message = error_of(send_body(method, body), 400, "bad_request")
    assert "events" in message
    assert len(message) < 200


@pytest.mark.parametrize("method", WITH_BODY)
@pytest.mark.parametrize(("_case", "body"), BAD_JSON)
@pytest.mark.spec("recording", "malformed JSON is 400; an empty PATCH body too")
def test_what_is_not_a_json_object_is_refused(send_body, method, _case, body):
    error_of(send_body(method, body), 400, "bad_request")


@pytest.mark.parametrize("method", WITH_BODY)
@pytest.mark.parametrize(
    "media_type",
    [
        "",
        "text/plain",
        "text/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "multipart/form-data",
        "application/*",
        "*/*",
        "application/jsonp",
        "application/" + "x" * 5000,
        "application/json, text/plain",
    ],
)
@pytest.mark.spec("recording", "wrong media type 415 unsupported_media_type")
def test_another_media_type_is_refused(send_body, method, media_type):
    body = orjson.dumps({"url": OTHER_URL, "events": []})
    response = send_body(method, body, content_type=media_type)
    error_of(response, 415, "unsupported_media_type")


@pytest.mark.parametrize("method", WITH_BODY)
@pytest.mark.parametrize("coding", ["gzip", "br", "GZIP", "identity, gzip"])
def test_an_encoded_body_is_refused(send_body, method, coding):
    body = gzip.compress(orjson.dumps({"url": OTHER_URL, "events": []}))
    response = send_body(method, body, headers={"Content-Encoding": coding})
    error_of(response, 415, "unsupported_media_type")
    assert "Content-Encoding" in response.json()["error"]["message"]
    assert response["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(
    "media_type",
    ["application/json; charset=utf-8", "APPLICATION/JSON", "application/json;"],
)
def test_parameters_and_case_of_the_media_type_do_not_matter(api, media_type):
    response = api.post("webhooks", {"url": URL}, content_type=media_type)
    assert response.status_code == 201


@pytest.mark.parametrize("method", WITH_BODY)
@pytest.mark.parametrize("size", [TOO_LONG, 3_000_000])
@pytest.mark.spec("recording", "body over the limit 413 payload_too_large")
def test_a_body_over_the_limit_is_refused(send_body, method, size):
    body = orjson.dumps({"url": OTHER_URL, "events": []}).ljust(size)
    error_of(send_body(method, body), 413, "payload_too_large")


def test_a_body_of_exactly_the_limit_is_read(api):
    body = orjson.dumps({"url": URL}).ljust(65_536)
    assert api.post("webhooks", body).status_code == 201


def test_of_a_field_named_twice_the_last_counts(api):
    body = b'{"url": "x", "url": "%s"}' % URL.encode()
    assert api.post("webhooks", body).json()["url"] == URL


@pytest.mark.parametrize(("method", "tail"), [("DELETE", ""), ("POST", "/test")])
@pytest.mark.spec("recording", "no body is read on DELETE and /test")
def test_delete_and_test_read_no_body(api, method, tail):
    endpoint_id = api.create()["endpoint_id"]
    path = f"webhooks/{endpoint_id}{tail}"
    response = api.send(method, path, b"\xff[[[", content_type="text/plain")
    assert response.status_code == 200
