"""Endpoints that never answer, beside those of another owner."""

import socket
from typing import Any
from uuid import uuid4

from tests.faults.rigged import PATIENT
from tests.running import until

OWNERS, ENDPOINTS, EVENTS = 2, 100, 30
# A worker sends so many requests at once that the others of these owners wait for an end of one.
IN_FLIGHT = 300


def test_endpoints_that_never_answer_do_not_delay_another_owner(
    sqlite_site, open_ledger
):
    site = sqlite_site
    others = [uuid4().hex for _ in range(OWNERS)]

    def look(name: str) -> list[Any]:
        return [
            row for owner in others for row in site.watcher.call("look", owner)[name]
        ]

    def claims() -> int:
        return sum(row["claimed_by"] is not None for row in look("deliveries"))

    with (
        socket.create_server(("127.0.0.1", 0), backlog=4096) as silent,
        open_ledger(site, "200 endpoints of others hang") as ledger,
    ):
        url = f"http://127.0.0.1:{silent.getsockname()[1]}{PATIENT}"
        for owner in others:
            site.watcher.call("declare", owner, url, ENDPOINTS)
            site.publisher.call("publish", owner, EVENTS)
        site.cluster()
        until(lambda: claims() >= IN_FLIGHT, "what hangs to be in flight")
        ledger.publish(EVENTS)
        ledger.wait_until_delivered()
        assert not look("outcomes"), "none of these requests ends by itself"
        for owner in others:
            site.watcher.call("unsubscribe", owner)
