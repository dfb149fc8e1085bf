"""A local receiver, and what arrives there: waited for and verified."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from config.operations.demonstration.steps import StepError
from webhooks_core.receiving.receiver import Receiver
from webhooks_core.receiving.verification import Received, verify

TOLERANCE_S = 60

Arrived = queue.Queue[Received]


@contextmanager
def receiver(statuses: tuple[int, ...] = (204,)) -> Iterator[tuple[str, Arrived]]:
    """Listen on loopback for the time of the demonstration; yield the address and the queue."""
    arrived: Arrived = queue.Queue()
    with Receiver(
        "127.0.0.1",
        0,
        on_request=lambda received, _: arrived.put(received),
        statuses=statuses,
    ) as receiver:
        threading.Thread(
            target=receiver.serve_forever, args=(0.05,), daemon=True
        ).start()
        try:
            yield receiver.url + "/hook", arrived
        finally:
            receiver.shutdown()


def next_verified(arrived: Arrived, *, secret: str, patience_s: float) -> Received:
    """Wait for an event and verify it. Raises StepError."""
    try:
        received = arrived.get(timeout=patience_s)
    except queue.Empty:
        raise StepError(
            f"nothing arrived within {patience_s:.0f} s: is the task cluster running "
            "(`manage.py qcluster`), on the same database?"
        ) from None
    verification = verify(received, secrets=[secret], tolerance_s=TOLERANCE_S)
    if not verification.is_verified:
        raise StepError(verification.message)
    return received
