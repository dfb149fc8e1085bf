"""A delivery that kills the process that sends it, beside the deliveries of others."""

from typing import Any
from uuid import uuid4

from tests.faults.rigged import DEADLY
from tests.running import until
from webhooks_core.dispatch.leases import (
    LONGEST_PAUSE,
    MAX_LONE_INTERRUPTIONS,
    SUSPECT_AFTER,
)

EVENTS, FEW, FAILED = 25, 5, 2


def test_a_delivery_that_kills_its_worker_fails_alone(timed_site, open_ledger):
    site, killer = timed_site, uuid4().hex

    def deadly() -> dict[str, Any]:
        (row,) = site.watcher.call("look", killer)["deliveries"]
        return dict(row)

    def wait_for_deaths(count: int) -> None:
        until(lambda: deadly()["interruptions"] == count, f"{count} deaths")

    with open_ledger(site, "a delivery kills its worker", delay=0.2) as ledger:
        site.watcher.call("subscribe", killer, [ledger.receivers[0].url + DEADLY], {})
        site.cluster()
        ledger.publish(EVENTS)
        until(lambda: len(ledger.received) >= 10, "some deliveries")
        site.publisher.call("publish", killer, 1)
        wait_for_deaths(SUSPECT_AFTER)
        ledger.wait_until_delivered()
        ledger.note_interrupted()
        interrupted = ledger.look()["outcomes"].count("interrupted")
        for receiver in ledger.receivers:
            receiver.delay = 0
        for deaths in range(1, MAX_LONE_INTERRUPTIONS + 1):
            wait_for_deaths(SUSPECT_AFTER + deaths)
            ledger.publish(FEW)  # the suspect waits for longer than these take
            ledger.wait_until_delivered()
            site.move_clock(deaths * LONGEST_PAUSE.total_seconds())
        assert deadly()["status"] == FAILED
        assert ledger.look()["outcomes"].count("interrupted") == interrupted > 0
