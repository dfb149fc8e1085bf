"""Fixtures of the dispatcher's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import time_machine
from django.utils import timezone


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    """A clock that stands still until the test moves it."""
    with time_machine.travel(timezone.now(), tick=False) as traveller:
        yield traveller
