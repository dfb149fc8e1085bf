"""kill -9 at the four points at which a delivery could get lost or be told wrong."""

from __future__ import annotations

import sys

import pytest

from tests.faults.rigged import ANSWERED, BEFORE_CLAIM, CLAIMED, POINTS, WRITING

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

EVENTS = 30


@pytest.mark.parametrize("victim", ["the worker", "the cluster", "the whole tree"])
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_loses_nothing_and_repeats_only_what_was_in_flight(
    site, books, point, victim
):
    with books(site, f"kill -9 of {victim} {point}") as it:
        site.cluster()
        it.publish(5)
        it.wait_until_delivered()
        site.arm(point)
        with it.publishing(EVENTS):
            site.halted()
            it.note_in_flight()
            reached = it.in_flight & it.received.keys()
            site.kill(victim)
        site.cluster()
        it.wait_until_delivered()
        outcomes = it.look()["outcomes"]
    assert bool(it.in_flight) == (point != BEFORE_CLAIM)
    assert bool(reached) == (point in {ANSWERED, WRITING})
    assert outcomes.count("interrupted") == len(it.in_flight)
    if point in {BEFORE_CLAIM, CLAIMED}:
        assert set(it.received.values()) == {1}
