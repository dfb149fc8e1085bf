"""Which URLs a subscription may have."""

from __future__ import annotations

import socket

import pytest

from recording import webhooks
from tests.recording.conftest import URL, error_of
from webhooks_core.models import Endpoint

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("url", ["http://localhost:9/x", "http://[::1]:9", URL])
def test_urls_that_are_accepted(api, url):
    assert api.create(url=url)["url"] == url


@pytest.mark.spec("recording", "url: HTTPS, publicly resolvable")
@pytest.mark.parametrize(
    ("_case", "url"),
    [
        ("plain http to a public host", "http://93.184.216.34/"),
        ("https to this machine", "https://localhost/"),
        ("a private address", "https://10.0.0.1/"),
        ("another loopback address", "http://127.0.0.2/"),
        ("the metadata service", "https://169.254.169.254/"),
        ("an address as a number", "https://2130706433/"),
        ("an IPv4 address in IPv6", "https://[::ffff:127.0.0.1]/"),
        ("a user name", "https://a@93.184.216.34/"),
        ("a user name and password", "http://a:b@127.0.0.1:9/"),
        ("a fragment", "https://93.184.216.34/#x"),
        ("an empty fragment", "https://93.184.216.34/#"),
        ("port 0", "https://93.184.216.34:0/"),
        ("another scheme", "ftp://93.184.216.34/"),
        ("no scheme", "93.184.216.34"),
        ("no host", "https:///x"),
        ("white space", "https://93.184.216.34/ x"),
        ("a line break", "https://93.184.216.34/\r\nX-Y: z"),
        ("NUL", "https://93.184.216.34/\0"),
        ("not ASCII", "https://93.184.216.34/ü"),
        ("too long", URL + "x" * 2048),
        ("our own listener", "http://127.0.0.1:8000/"),
        ("our own listener by name", "http://localhost:8000/v1/webhooks"),
    ],
)
def test_urls_that_are_refused(api, _case, url):
    error_of(api.post("webhooks", {"url": url}), 400, "bad_request")
    assert not Endpoint.objects.exists()


@pytest.mark.parametrize(
    ("_case", "resolved", "status"),
    [
        ("no such name", socket.gaierror(socket.EAI_NONAME, "unknown"), 400),
        ("a private address", [(2, 1, 6, "", ("192.168.0.9", 0))], 400),
        ("a resolver that fails", socket.gaierror(socket.EAI_AGAIN, "later"), 201),
        ("a public address", [(2, 1, 6, "", ("93.184.216.34", 0))], 201),
    ],
)
@pytest.mark.spec("recording", "a definite no-such-name is refused at create")
def test_names_are_resolved_before_they_are_accepted(
    api, monkeypatch, _case, resolved, status
):
    def resolve(_host, _port, **_options):
        if isinstance(resolved, Exception):
            raise resolved
        return resolved

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    response = api.post("webhooks", {"url": "https://hooks.example.com/"})
    assert response.status_code == status
    assert Endpoint.objects.count() == (status == 201)


def test_in_production_this_machine_is_refused():
    profile = webhooks.profile(base_url="https://signpost.example", local=False)
    for url in (
        "http://localhost:9/",
        "https://127.0.0.1/",
        "https://signpost.example",
    ):
        with pytest.raises(ValueError, match="url must"):
            profile.url_policy.check(url)
