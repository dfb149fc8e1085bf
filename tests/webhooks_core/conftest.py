"""Fixtures of the engine's tests."""

import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme
from django.db import transaction
from django.utils import timezone
from time_machine import Traveller

from tests.clock import travel
from webhooks_core import profiles
from webhooks_core.profiles import WebhookProfile


@pytest.fixture
def commits_at_once(monkeypatch, db) -> None:
    """Run what waits for a commit at once, where the test is one transaction by itself."""

    def run(hook: Callable[[], object], *, robust: bool = False) -> None:
        hook()

    monkeypatch.setattr(transaction, "on_commit", run)


@pytest.fixture
def clock() -> Iterator[Traveller]:
    """A clock that stands still until the test moves it."""
    with travel(timezone.now(), tick=False) as traveller:
        yield traveller


@pytest.fixture
def shop(monkeypatch, plain) -> WebhookProfile:
    """A product of another project; its header prefix is made of its name."""
    profile: WebhookProfile = replace(plain, name="shop", header_prefix="")
    monkeypatch.setitem(profiles.PROFILES, "shop", profile)
    return profile


@pytest.fixture
def authority(settings, tmp_path: Path) -> trustme.CA:
    """An authority that is trusted because the operator's EXTRA_CA_FILE holds it."""
    ca = trustme.CA()
    settings.EXTRA_CA_FILE = str(tmp_path / "ca.pem")
    ca.cert_pem.write_to_path(settings.EXTRA_CA_FILE)
    return ca


@pytest.fixture
def names(monkeypatch) -> dict[str, list[list[str]]]:
    """Names and their answers, one after another; the last one holds."""
    known: dict[str, list[list[str]]] = {}
    real = socket.getaddrinfo

    def resolve(host, port, *args: Any, **options: Any) -> Any:
        if host not in known:
            return real(host, port, *args, **options)
        turns = known[host]
        addresses = turns.pop(0) if len(turns) > 1 else turns[0]
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in addresses
        ]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return known
