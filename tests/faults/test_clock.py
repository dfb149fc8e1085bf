"""The wall clock of all processes jumps while deliveries wait and are claimed.

On PostgreSQL its own clock counts: see test_machines.py.
"""

from __future__ import annotations

from tests.faults.rigged import ANSWERED, CLAIMED

EVENTS = 30
HOUR = 3600


def test_a_jump_of_the_clock_loses_nothing(timed_site, open_ledger):
    """Forwards and backwards, and each of them at both points."""
    cluster, seconds = timed_site.cluster(), 0
    for point, words in [
        (CLAIMED, "forwards"),
        (ANSWERED, "backwards"),
        (ANSWERED, "forwards"),
        (CLAIMED, "backwards"),
    ]:
        seconds = HOUR - seconds
        with open_ledger(timed_site, f"clock an hour {words} {point}") as ledger:
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
            timed_site.watcher.call("sweep_soon")
        assert timed_site.cluster() is cluster
