"""The wall clock of all processes jumps while deliveries wait and are claimed.

On PostgreSQL its own clock counts: see test_machines.py.
"""

from __future__ import annotations

import sys

import pytest

from tests.faults.rigged import ANSWERED, CLAIMED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

EVENTS = 30
HOUR = 3600


@pytest.mark.parametrize("point", [CLAIMED, ANSWERED])
@pytest.mark.parametrize(
    ("words", "seconds"), [("forwards", HOUR), ("backwards", -HOUR)]
)
def test_a_jump_of_the_clock_loses_nothing(
    timed_site, open_ledger, words, seconds, point
):
    with open_ledger(timed_site, f"clock an hour {words} {point}") as ledger:
        cluster = timed_site.cluster()
        ledger.publish(5)
        ledger.wait_until_delivered()
        timed_site.arm(point)
        with ledger.publishing(EVENTS):
            timed_site.halted()
        ledger.note_in_flight()
        timed_site.move_clock(seconds)
        timed_site.go_on()
        ledger.publish(EVENTS)
        ledger.wait_until_delivered()
        ledger.note_interrupted()
        assert timed_site.cluster() is cluster
