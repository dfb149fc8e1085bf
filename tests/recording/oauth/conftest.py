"""Fixtures: an account, its browser, and clients of each authentication method."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import trustme
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.test import Client

from recording.oauth import client_documents
from tests.documented import DocumentedClient
from tests.factories import UserFactory
from tests.recording.accounts.browsers import BACKEND, PASSWORD, logged_in
from tests.recording.oauth.documents import HOST, Site, server_side
from tests.recording.oauth.flows import App
from tests.recording.oauth.live import Person
from tests.running import PATIENCE_S


@pytest.fixture
def account(db) -> User:
    return UserFactory.create(
        username="ada", email="ada@example.org", password=PASSWORD
    )


@pytest.fixture
def visitor(account) -> Client:
    client = DocumentedClient()
    client.force_login(account, BACKEND)
    return client


@pytest.fixture
def app(visitor) -> App:
    """A public client that has registered itself."""
    return App.registered(visitor)


@pytest.fixture
def confidential(visitor) -> App:
    return App.registered(visitor, "client_secret_basic")


@pytest.fixture
def person(live_server, settings) -> Iterator[Person]:
    """Somebody who is logged in, and a server that listens."""
    settings.BASE_URL = live_server.url
    visitor = logged_in(UserFactory.create(username="ada", email="ada@example.org"))
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
    loopback = ["127.0.0.1"]
    monkeypatch.setattr(client_documents, "_public_addresses", lambda *_: loopback)
    monkeypatch.setattr(client_documents, "FETCH_FOR_S", PATIENCE_S)
    with socket.create_server(("127.0.0.1", 0)) as server:
        site = Site(server, server_side(authority.issue_cert(HOST)))
        thread = threading.Thread(target=site.serve, daemon=True)
        thread.start()
        site.publish()
        yield site
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.fixture
def described(visitor, site) -> App:
    return App(visitor, site.client_id)
