"""`doctor --reach`: what a client outside would meet, and what to do about it."""

from __future__ import annotations

import http.server
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import requests
import trustme
from django.db import connections

from config import asgi
from config.operations import own_requests, reach, stream_probe
from config.operations.reach import Level
from config.wsgi import application as wsgi_application
from tests.config.serving.test_server import bridge_to, served
from tests.running import PATIENCE_S


def found() -> dict[str, tuple[Level, str]]:
    """Return the last level and sentence of each probe."""
    return {name: (level, message) for name, level, message in reach.examine()}


def without_connections(environ, start_response):
    """Answer as Signpost, and leave the test's database to the test."""
    try:
        return wsgi_application(environ, start_response)
    finally:
        connections.close_all()


@pytest.fixture
def instance(settings, transactional_db, monkeypatch) -> Iterator[str]:
    bridge = bridge_to(without_connections)
    monkeypatch.setattr(asgi, "everything_else", bridge)
    with served(asgi.application) as settings.BASE_URL:
        yield settings.BASE_URL


@pytest.fixture
def site(settings, httpserver):
    """Something else that answers at BASE_URL; `/healthz` is right."""
    settings.BASE_URL = httpserver.url_for("").rstrip("/")
    httpserver.expect_request("/healthz").respond_with_data('{"status": "ok"}')
    return httpserver


def test_an_instance_that_is_reached_is_ok_in_every_respect(instance):
    assert {name: level for name, (level, _) in found().items()} == dict.fromkeys(
        reach.PROBES, Level.OK
    )


@pytest.mark.parametrize(
    ("_case", "status", "body", "words"),
    [
        ("the proxy is there alone", 502, "", "start the web server"),
        ("another site answers", 200, "<html>", "leads elsewhere"),
    ],
)
def test_an_address_of_another_site_fails(
    settings, httpserver, _case, status, body, words
):
    settings.BASE_URL = httpserver.url_for("").rstrip("/")
    httpserver.expect_request("/healthz").respond_with_data(body, status)
    level, message = found()["address"]
    assert level == Level.FAILED
    assert words in message


def test_a_site_that_redirects_to_itself_fails_with_the_remedy(site):
    url = site.url_for("/accounts/login")
    site.expect_request("/accounts/login").respond_with_data(
        status=301, headers={"Location": url}
    )
    level, message = found()["page"]
    assert level == Level.FAILED
    assert "TRUST_X_FORWARDED_PROTO=true" in message


def test_paths_that_the_proxy_does_not_pass_on_fail(site):
    results = found()
    assert results["address"][0] == Level.OK
    for name in ("page", "static file", "API", "stream"):
        assert results[name][0] == Level.FAILED, name


def test_a_proxy_that_drops_the_authorization_fails(instance, monkeypatch):
    class Dropping(requests.Session):
        def send(self, request, **options):
            request.headers.pop("Authorization", None)
            return super().send(request, **options)

    monkeypatch.setattr(own_requests, "session", Dropping)
    level, message = found()["API"]
    assert level == Level.FAILED
    assert "Authorization" in message


def test_a_proxy_that_buffers_streams_fails(site):
    site.expect_request(stream_probe.PATH).respond_with_data("{}\n{}\n")
    level, message = found()["stream"]
    assert level == Level.FAILED
    assert "proxy_buffering off" in message


def delay_parts(monkeypatch, *seconds: int) -> None:
    """Have the second part of each stream come so long after the first, as the clock says."""
    ticks = iter([tick for later in seconds for tick in (0, later)])
    clock = SimpleNamespace(monotonic=lambda: next(ticks))
    monkeypatch.setattr(reach, "time", clock)


def test_a_stream_whose_parts_are_read_at_once_is_asked_for_again(site, monkeypatch):
    site.expect_request(stream_probe.PATH).respond_with_data("{}\n{}\n")
    delay_parts(monkeypatch, 0, 0, 1)
    assert found()["stream"][0] == Level.OK


@pytest.mark.parametrize("body", ["<html>", "{}\n{}\n"])
def test_a_repeat_that_fails_does_not_hide_that_streams_are_buffered(
    site, monkeypatch, body
):
    site.expect_oneshot_request(stream_probe.PATH).respond_with_data("{}\n{}\n")
    site.expect_request(stream_probe.PATH).respond_with_data(body, 502)
    delay_parts(monkeypatch, 0, 1, 1)
    level, message = found()["stream"]
    assert level == Level.FAILED
    assert "proxy_buffering off" in message


@pytest.mark.parametrize("body", ["", "<html>", "[]\n{}\n", "null"])
def test_a_stream_of_another_site_fails(site, body):
    site.expect_request(stream_probe.PATH).respond_with_data(body)
    level, message = found()["stream"]
    assert level == Level.FAILED
    assert "no valid response" in message


def test_a_scheme_that_arrives_and_is_not_trusted_is_a_warning(
    instance, monkeypatch, settings
):
    def session() -> requests.Session:
        created = requests.Session()
        created.headers["X-Forwarded-Proto"] = "https"
        return created

    monkeypatch.setattr(own_requests, "session", session)
    level, message = found()["stream"]
    assert level == Level.WARNING
    assert "TRUST_X_FORWARDED_PROTO" in message
    settings.TRUST_X_FORWARDED_PROTO = True
    assert found()["stream"][0] == Level.OK


@pytest.mark.parametrize("token", ["", "?token=", "?token=stream:1:x", "?token=%00"])
def test_the_stream_needs_a_signature(instance, token):
    response = requests.get(instance + stream_probe.PATH + token, timeout=PATIENCE_S)
    assert (response.status_code, response.content) == (404, b"")


def test_the_stream_needs_an_allowed_host(instance):
    url = instance + stream_probe.address()
    assert requests.get(url, timeout=PATIENCE_S).status_code == 200
    for host in ("evil.example", ""):
        response = requests.get(url, headers={"Host": host}, timeout=PATIENCE_S)
        assert response.status_code == 400


def test_another_secret_key_fails_with_the_remedy(instance, monkeypatch):
    unsigned = (lambda: stream_probe.PATH, reach.PROBES["stream"][1])
    monkeypatch.setitem(reach.PROBES, "stream", unsigned)
    assert "same SECRET_KEY" in found()["stream"][1]


# ── Nothing answers ─────────────────────────────────────────────────────────────────


def only_message() -> str:
    """Return why nothing answers; the other probes are left out."""
    (name,) = results = found()
    assert (name, results[name][0]) == ("address", Level.FAILED)
    return results[name][1]


def test_a_proxy_that_does_not_listen_fails(settings, free_port):
    settings.BASE_URL = f"http://127.0.0.1:{free_port}"
    assert "Nothing listens" in only_message()


def test_a_name_that_cannot_be_resolved_fails(settings, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    settings.BASE_URL = "https://signpost.example"
    assert "cannot be resolved" in only_message()


@contextmanager
def behind_tls(authority: trustme.CA) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server = http.server.HTTPServer(
        ("127.0.0.1", 0), http.server.BaseHTTPRequestHandler
    )
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_untrusted_certificate_fails_unless_extra_ca_file_has_it(settings, tmp_path):
    authority = trustme.CA()
    with behind_tls(authority) as settings.BASE_URL:
        message = only_message()
        assert "certificate" in message
        assert "unable to get local issuer certificate" in message
        settings.EXTRA_CA_FILE = str(tmp_path / "ca.pem")
        authority.cert_pem.write_to_path(settings.EXTRA_CA_FILE)
        assert "is answered 501" in found()["address"][1]
