"""Fixtures: an account, its browser, and clients of each authentication method."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.oauth.flows import App


@pytest.fixture
def account(db) -> User:
    return User.objects.create_user("ada", "ada@example.org")


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
