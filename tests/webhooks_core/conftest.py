"""Fixtures of the engine's tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import transaction
from hypothesis import settings

# `--hypothesis-profile=long`: searches that take a quarter of an hour instead of seconds.
settings.register_profile("long", print_blob=True)


@pytest.fixture
def commits_at_once(monkeypatch, db) -> None:
    """Run what waits for a commit at once, where the test is one transaction by itself."""

    def run(hook: Callable[[], object], *, robust: bool = False) -> None:
        hook()

    monkeypatch.setattr(transaction, "on_commit", run)
