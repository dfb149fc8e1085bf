"""Fixtures of the gateway's tests."""

from __future__ import annotations

import pytest
from django.core.cache import cache

from gateway import keys, static
from tests.gateway.making import Api


@pytest.fixture(autouse=True)
def nothing_remembered():
    """No test sees what another left in this process."""
    keys._cache.clear()
    static._synchronised.clear()
    cache.clear()


@pytest.fixture
def acme() -> Api:
    """A principal of a tenant, by header identity from loopback."""
    return Api(tenant="acme", principal="ada")


@pytest.fixture
def globex() -> Api:
    return Api(tenant="globex", principal="gus")
