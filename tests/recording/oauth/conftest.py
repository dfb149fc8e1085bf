"""Fixtures: an account, its browser, and clients of each authentication method."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.test import Client

from tests.factories import UserFactory
from tests.recording.oauth.flows import App
from tests.recording.oauth.live import Person


@pytest.fixture
def account(db) -> User:
    return UserFactory.create(username="ada", email="ada@example.org")


@pytest.fixture
def visitor(account) -> Client:
    client = Client()
    client.force_login(account, backend="django.contrib.auth.backends.ModelBackend")
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
    visitor, session = Client(), requests.Session()
    visitor.force_login(
        UserFactory.create(username="ada", email="ada@example.org"),
        "django.contrib.auth.backends.ModelBackend",
    )
    name = django_settings.SESSION_COOKIE_NAME
    session.cookies.set(name, visitor.cookies[name].value)
    with session:
        yield Person(live_server.url, session)
