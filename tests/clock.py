"""The clock of tests that travel in time."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from unittest.mock import patch

import time_machine
from django.utils import timezone

from webhooks_core.database.clock import DatabaseClock


@contextmanager
def travel(
    to: datetime | str, *, tick: bool = True
) -> Iterator[time_machine.Traveller]:
    """Let it be another time within a block; with `tick=False` until the block moves it.

    PostgreSQL's clock stays where it is. So the engine goes by this machine's clock meanwhile.
    """
    with (
        patch.object(DatabaseClock, "_is_elsewhere", lambda _: False),
        time_machine.travel(to, tick=tick) as traveller,
    ):
        yield traveller


def later(**time: float) -> AbstractContextManager[time_machine.Traveller]:
    """Let it be so much later, or earlier, within a block, where time stands still."""
    return travel(timezone.now() + timedelta(**time), tick=False)
