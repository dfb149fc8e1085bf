"""Two machines with a task cluster each, on one database and one broker."""

from __future__ import annotations

import sys
import time

import pytest

from tests.faults.rigged import WRITING

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

EVENTS = 30
# The lease and 15 s more; twice that on a machine that is busy with other tests.
DELAYED_S = 2 * 30


def test_a_machine_that_freezes_inside_a_transaction_stops_no_other(
    postgres_site, open_ledger, tmp_path
):
    site, fault = postgres_site, f"machine frozen {WRITING}"
    with site.another_machine(tmp_path) as other, open_ledger(site, fault) as ledger:
        frozen = site.cluster()
        ledger.publish(5)
        ledger.wait_until_delivered()
        site.arm(WRITING)
        with ledger.publishing(EVENTS):
            site.halted()
        other.cluster().wait_for("task cluster starts")
        with site.frozen():
            since = time.monotonic()
            ledger.note_in_flight()
            site.watcher.call("change", ledger.owner)
            ledger.publish(EVENTS)
            ledger.wait_until_delivered()
            assert time.monotonic() - since < DELAYED_S
        frozen.wait_for("database unavailable")
        ledger.publish(1)
        ledger.wait_until_delivered()
        assert ledger.look()["outcomes"].count("interrupted") == len(ledger.in_flight)


def test_machines_whose_clocks_differ_leave_each_others_leases_alone(
    postgres_site, open_ledger, tmp_path
):
    site = postgres_site
    with (
        site.another_machine(tmp_path, ahead=20) as ahead,
        open_ledger(site, "clocks of two machines 20 s apart", delay=0.3) as ledger,
    ):
        site.cluster()
        ledger.publish(EVENTS)
        ahead.run("webhooks_sweep")
        ahead.cluster().wait_for("task cluster starts")
        site.stop()
        ledger.publish(EVENTS)
        site.run("webhooks_sweep")
        ledger.wait_until_delivered()
        assert set(ledger.look()["outcomes"]) == {"ok"}
        assert set(ledger.received.values()) == {1}
