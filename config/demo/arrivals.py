"""A subscription of the demonstration, its local receiver, and the events that arrive there."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from config.demo.steps import Client, StepError, Steps
from webhooks_core.verifying.receiver import Receiver
from webhooks_core.verifying.verification import Received, verify

TOLERANCE_S = 60

Arrivals = queue.Queue[Received]


@contextmanager
def receiver(statuses: tuple[int, ...] = (204,)) -> Iterator[tuple[str, Arrivals]]:
    """Listen on loopback during the demonstration; yield the URL and the queue."""
    arrivals: Arrivals = queue.Queue()
    with Receiver(
        "127.0.0.1",
        0,
        on_request=lambda received, _: arrivals.put(received),
        statuses=statuses,
    ) as receiver:
        threading.Thread(
            target=receiver.serve_forever, args=(0.05,), daemon=True
        ).start()
        try:
            yield receiver.url + "/hook", arrivals
        finally:
            receiver.shutdown()


@contextmanager
def subscription(
    steps: Steps, client: Client, path: str, *, title: str, id_field: str, **body: Any
) -> Iterator[dict[str, Any]]:
    """Subscribe during the demonstration; yield the created subscription. Raises StepError."""
    with steps.step(title):
        created = client.call("POST", path, expect=201, json=body)
        steps.show("id", created[id_field])
    path = f"{path}/{created[id_field]}"
    try:
        yield created
    except BaseException:
        with suppress(StepError):
            client.request("DELETE", path)
        raise
    with steps.step("The subscription is deleted"):
        status = client.request("DELETE", path).status_code
        if status not in {200, 204}:
            raise StepError(f"DELETE {path} answered {status}")


def next_verified(arrivals: Arrivals, *, secret: str, timeout_s: float) -> Received:
    """Wait for an event and verify it. Raises StepError."""
    try:
        received = arrivals.get(timeout=timeout_s)
    except queue.Empty:
        raise StepError(
            f"nothing arrived within {timeout_s:.0f} s: is the task cluster running "
            "(`manage.py qcluster`), on the same database?"
        ) from None
    verification = verify(received, secrets=[secret], tolerance_s=TOLERANCE_S)
    if not verification.is_verified:
        raise StepError(verification.message)
    return received
