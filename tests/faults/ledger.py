"""The ledger of one fault: what was published, what arrived, and what must hold afterwards."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import orjson

from tests.faults.site import Site
from tests.receiver import Receiver
from tests.running import until

ENDPOINTS = 2
PENDING, DELIVERED = 0, 1

Pair = tuple[str, str]  # an event and the url that it goes to


@dataclass
class Ledger:
    """One owner with some endpoints on a site, and all that happens to their events."""

    site: Site
    fault: str
    receivers: list[Receiver]
    owner: str = field(default_factory=lambda: uuid4().hex)
    acknowledged: set[str] = field(default_factory=set)
    in_flight: set[Pair] = field(default_factory=set)

    def publish(self, count: int) -> None:
        """Publish events in one transaction. Raises DatabaseAwayError."""
        with self.publishing(count):
            pass

    @contextmanager
    def publishing(self, count: int) -> Iterator[None]:
        """Have events published while something else happens. Raises DatabaseAwayError."""
        self.site.publisher.send("publish", self.owner, count)
        yield
        self.acknowledged.update(self.site.publisher.receive())

    def look(self) -> dict[str, Any]:
        rows: dict[str, Any] = self.site.watcher.call("look", self.owner)
        return rows

    @property
    def received(self) -> Counter[Pair]:
        """How often each event has reached each receiver."""
        return Counter(
            (orjson.loads(request.body)["id"], receiver.url)
            for receiver in self.receivers
            for request in list(receiver.requests)
        )

    def claimed(self) -> set[Pair]:
        """Return what is claimed in the database."""
        return {_pair(row) for row in self.look()["deliveries"] if row["claimed_by"]}

    def note_in_flight(self) -> None:
        """Note what is claimed at the moment of the fault: only that may arrive twice."""
        self.in_flight |= self.claimed()

    def note_interrupted(self) -> None:
        """Note what was claimed when the lease of a live dispatcher expired."""
        rows = self.look()["deliveries"]
        self.in_flight |= {_pair(row) for row in rows if row["interruptions"]}

    def wait_until_delivered(self) -> None:
        def is_delivered() -> bool:
            rows = self.look()
            done = all(row["status"] == DELIVERED for row in rows["deliveries"])
            return done and not rows["leased"]

        until(is_delivered, f"everything to be delivered: {self.fault}", seconds=100)

    def check(self) -> dict[str, Any]:
        """Check what must hold after any fault; return the counts."""
        rows, received = self.look(), self.received
        stored = {_pair(row) for row in rows["deliveries"]}
        twice = {pair for pair, times in received.items() if times > 1}
        lost = {
            (event, receiver.url)
            for event in self.acknowledged
            for receiver in self.receivers
        } - {_pair(row) for row in rows["deliveries"] if row["status"] == DELIVERED}
        counts = {
            "fault": self.fault,
            "on": self.site.name,
            "published": len(rows["events"]),
            "deliveries": len(stored),
            "delivered": len(stored & received.keys()),
            "in flight": len(self.in_flight),
            "duplicated": sum(received.values()) - len(received),
            "lost": len(lost),
        }
        assert lost == set(), counts
        assert self.acknowledged <= set(rows["events"])
        assert len(stored) == len(self.receivers) * len(rows["events"])
        assert twice <= self.in_flight, counts
        assert received.keys() <= stored
        for row in rows["deliveries"]:
            self._check_delivery(row, times=received[_pair(row)])
        for row in rows["endpoints"]:
            assert row["consecutive_failures"] == 0
            assert (row["status"], row["active"]) == (1, True)
        assert set(rows["outcomes"]) <= {"ok", "interrupted"}
        return counts

    def _check_delivery(self, row: dict[str, Any], *, times: int) -> None:
        assert row["claimed_by"] is None
        if row["status"] == PENDING:
            assert not row["is_due"]
            return
        assert row["status"] == DELIVERED
        assert times >= 1
        # Our own fault counts neither against the receiver nor the retry policy.
        assert row["attempts"] - row["interruptions"] == 1
        assert times <= row["attempts"]


def _pair(row: dict[str, Any]) -> Pair:
    return row["event__public_id"], row["endpoint__url"]


@contextmanager
def open_ledger(
    site: Site, fault: str, *, delay: float = 0, **fields: Any
) -> Iterator[Ledger]:
    """Open the ledger of one fault: receivers that answer 204 after `delay`, and endpoints for them."""
    with ExitStack() as stack:
        receivers = [
            stack.enter_context(Receiver(delay=delay).running())
            for _ in range(ENDPOINTS)
        ]
        ledger = Ledger(site, fault, receivers)
        site.watcher.call(
            "subscribe", ledger.owner, [receiver.url for receiver in receivers], fields
        )
        try:
            yield ledger
        finally:
            sys.stdout.write(site.output())  # shown with a failure
