"""kill -9 at the four points at which a delivery could get lost or be recorded wrongly."""

import pytest

from tests.faults.rigged import ANSWERED, BEFORE_CLAIM, CLAIMED, POINTS, WRITING

EVENTS = 30
# Its end is that of all other processes: to the database one is as good as the other.
CLUSTER, TREE = "the cluster", "the whole tree"


@pytest.mark.parametrize(
    ("point", "victim"),
    [
        *((point, "the worker") for point in POINTS),
        *((CLAIMED, TREE), (WRITING, CLUSTER)),
    ],
)
def test_a_kill_loses_nothing_and_repeats_only_what_was_in_flight(
    site, open_ledger, point, victim
):
    with open_ledger(site, f"kill -9 of {victim} {point}") as ledger:
        site.cluster()
        ledger.publish(5)
        ledger.wait_until_delivered()
        site.arm(point)
        with ledger.publishing(EVENTS):
            site.halted()
            ledger.note_in_flight()
            reached = ledger.in_flight & ledger.received.keys()
            site.kill(victim)
        site.cluster()
        ledger.wait_until_delivered()
        outcomes = ledger.look()["outcomes"]
    assert bool(ledger.in_flight) == (point != BEFORE_CLAIM)
    assert bool(reached) == (point in {ANSWERED, WRITING})
    assert outcomes.count("interrupted") == len(ledger.in_flight)
    if point in {BEFORE_CLAIM, CLAIMED}:
        assert set(ledger.received.values()) == {1}
