from __future__ import annotations

import errno
import json
from io import BytesIO

import pytest
from django.test import RequestFactory

from config.wsgi import application

UNREADABLE = [
    "application/json; charset*=nonsense''%ff",
    "application/json; charset *=nonsense''x",
    "application/json; q*=idna''%ff",
    # Codecs of Python that are no character sets, or decode names of hosts alone.
    "application/json; charset=hex",
    'application/json; Charset="idna"',
    "application/json; charset=punycode",
    "application/json; charset=undefined",
]


def status(path, content_type="application/json", **headers):
    """POST to the WSGI entry; return the status line."""
    body = b'{"query": "{ __typename }"}'
    asked = RequestFactory().post(path, body, "application/json", headers=headers)
    environ = asked.environ | {"CONTENT_TYPE": content_type}
    lines: list[str] = []
    response = application(environ, lambda line, *_: lines.append(line))
    b"".join(response)
    response.close()  # type: ignore[attr-defined]
    return lines[0]


@pytest.mark.django_db
@pytest.mark.parametrize("header", UNREADABLE)
@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("/graphql", "415 Unsupported Media Type"),
        ("/oauth/token", "400 Bad Request"),
        ("/v1/webhooks", "401 Unauthorized"),
        ("/nothing", "404 Not Found"),
    ],
)
def test_an_unreadable_content_type_is_refused_by_the_view(path, header, refused):
    assert status(path, header) == refused


@pytest.mark.django_db
@pytest.mark.parametrize("header", UNREADABLE)
def test_an_unreadable_accept_header_counts_as_missing(header):
    assert status("/graphql", accept=header) == "200 OK"


@pytest.mark.django_db
@pytest.mark.parametrize("charset", ["hex", "rot13", "idna", "punycode", "undefined"])
def test_a_query_is_read_whatever_character_set_the_body_claims(charset):
    asked = RequestFactory().get("/v1/webhooks?page=%FF&page_size=a")
    environ = asked.environ | {"CONTENT_TYPE": f"text/plain; charset={charset}"}
    lines: list[str] = []
    application(environ, lambda line, *_: lines.append(line))
    assert lines == ["401 Unauthorized"]


class NotStored(BytesIO):
    """A body that the server could not keep: there is no room for temporary files."""

    def read(self, *_: object) -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.django_db
def test_a_body_that_could_not_be_stored_is_503_in_the_products_format():
    identity = {"X-Tenant-Id": "acme", "X-Principal-Id": "ada"}
    asked = RequestFactory().post(
        "/v1/ingest", b"{}", "application/json", headers=identity
    )
    statuses: list[str] = []
    environ = asked.environ | {"wsgi.input": NotStored()}
    response = application(environ, lambda line, *_: statuses.append(line))
    assert json.loads(b"".join(response)).keys() == {"detail"}
    assert statuses == ["503 Service Unavailable"]
