"""The wall clock of all processes jumps while deliveries wait and are being tried."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.faults.rigged import ANSWERED, CLAIMED
from tests.faults.site import Site

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

EVENTS = 30
HOUR = 3600


@pytest.fixture
def timed_site(site) -> Iterator[Site]:
    yield site
    # A shift that waits would live on with a lease from another time, and be buried for it in
    # the next test.
    site.stop()
    site.move_clock(0)
    site.watcher.tell("sweep_soon")


@pytest.mark.parametrize("point", [CLAIMED, ANSWERED])
@pytest.mark.parametrize(
    ("words", "seconds"), [("forwards", HOUR), ("backwards", -HOUR)]
)
def test_a_jump_of_the_clock_loses_nothing(timed_site, books, words, seconds, point):
    with books(timed_site, f"clock an hour {words} {point}") as it:
        cluster = timed_site.cluster()
        it.publish(5)
        it.wait_until_delivered()
        timed_site.arm(point)
        with it.publishing(EVENTS):
            timed_site.halted()
        it.note_in_flight()
        timed_site.move_clock(seconds)
        timed_site.go_on()
        it.publish(EVENTS)
        it.wait_until_delivered()
        it.note_interrupted()
        assert timed_site.cluster() is cluster
