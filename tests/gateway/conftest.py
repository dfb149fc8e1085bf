"""Fixtures of the gateway's tests."""

import pytest
from django.core.cache import cache

from gateway import configuration, keys
from gateway.chat.loop_thread import LOOP_THREAD
from tests.gateway.client import Api


@pytest.fixture(autouse=True)
def nothing_remembered():
    """No test sees what another left in this process: no key, and no loop behind the views."""
    keys._cache.clear()
    cache.clear()
    yield
    LOOP_THREAD.stop()


@pytest.fixture
def acme() -> Api:
    """A principal of a tenant, by header identity from loopback."""
    return Api(tenant="acme", principal="ada")


@pytest.fixture
def globex() -> Api:
    return Api(tenant="globex", principal="gus")


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Load a text as a configuration file: `load(text, NAME="value")`."""

    def read(text: str | bytes, **environ: str) -> configuration.Configuration:
        file = tmp_path / "gateway.yaml"
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        return configuration.load(file)

    return read
