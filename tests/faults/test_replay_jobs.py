"""kill -9 in the middle of replays of many events: each event is sent once, and none is left out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.ledger import Ledger
from tests.faults.rigged import QUEUED, QUEUEING
from tests.faults.site import Site
from tests.running import until

EVENTS = 150


@pytest.mark.parametrize(
    ("point", "victim"), [(QUEUEING, "the worker"), (QUEUED, "the whole tree")]
)
def test_a_replay_goes_on_from_where_it_was_killed(
    site: Site, open_ledger, point, victim
):
    fault = f"kill -9 of {victim} {point}"
    with open_ledger(site, fault, delay=0.02) as ledger:
        site.watcher.call("switch", ledger.owner, False)
        ledger.publish(EVENTS)
        assert ledger.look()["deliveries"] == []
        site.watcher.call("switch", ledger.owner, True)
        site.watcher.call("replay_missing", ledger.owner)
        site.cluster()
        until(lambda: len(ledger.received) >= 20, "the replays to begin")
        site.arm(point)
        site.halted()
        with site.frozen():
            ledger.note_in_flight()
            assert len(ledger.received) < EVENTS * len(ledger.receivers)
            site.kill(victim)
        site.cluster()
        until(
            lambda: {row["status"] for row in replays(ledger)} == {"done"},
            "the replays to end",
            seconds=100,
        )
        ledger.wait_until_delivered()
        for row in replays(ledger):
            assert (row["total"], row["sent"], row["skipped"]) == (EVENTS, EVENTS, 0)
        assert len(ledger.look()["deliveries"]) == EVENTS * len(ledger.receivers)


def replays(ledger: Ledger) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = ledger.site.watcher.call("replays", ledger.owner)
    return rows
