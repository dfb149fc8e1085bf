"""Clients of each kind, and where they publish what they are."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import trustme
from django.conf import settings as django_settings
from oauth2_provider import cimd

from recording.oauth import documents
from tests.recording.accounts.browsers import logged_in
from tests.recording.oauth.documents import HOST, Site
from tests.recording.oauth.flows import App
from tests.recording.oauth.live import Person
from tests.webhooks_core.network.hostile import closes_at_once, server_side


@pytest.fixture
def confidential(visitor) -> App:
    return App.registered(visitor, "client_secret_basic")


@pytest.fixture
def person(live_server, user, settings) -> Iterator[Person]:
    """Somebody who is logged in, and a server that listens."""
    settings.BASE_URL = live_server.url
    visitor = logged_in(user)
    name = django_settings.SESSION_COOKIE_NAME
    with requests.Session() as session:
        session.cookies.set(name, visitor.cookies[name].value)
        yield Person(live_server.url, session)


@pytest.fixture
def site(monkeypatch, tmp_path: Path) -> Iterator[Site]:
    """A site with a certificate that is trusted, and whose name leads to loopback."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    ever = socket.getaddrinfo

    def resolve(host: Any, *args: Any, **options: Any) -> Any:
        return ever("127.0.0.1" if host == HOST else host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(documents, "check_address", lambda _: None)
    monkeypatch.setattr(cimd, "_ip_is_public", lambda _: True)
    tls = server_side(authority.issue_cert(HOST))
    with Site(closes_at_once, tls).running() as site:
        site.publish()
        yield site


@pytest.fixture
def described(visitor, site) -> App:
    return App(visitor, site.client_id)
