"""Run the engine in a test, and read its result."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import connection

from tests.receiver import Receiver
from tests.running import PATIENCE_S
from webhooks_core.dispatch import dispatcher
from webhooks_core.dispatch.sender import Sender
from webhooks_core.models import Delivery


def dispatch(**options: Any) -> int:
    """Send what is due now; do not wait for what is due later."""
    defaults: dict[str, Any] = {"linger": timedelta(0), "run_s": PATIENCE_S}
    return dispatcher.dispatch(**defaults | options)


@contextmanager
def running_dispatcher() -> Iterator[None]:
    """Run the engine beside the test."""
    stopped = threading.Event()

    def work() -> None:
        try:
            while not stopped.is_set():
                dispatch(stop=stopped.is_set, resident=True)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def answer_after_release(monkeypatch, server: Receiver) -> None:
    """Open the gate of a receiver when what has not been started is released."""
    release_unstarted = Sender.release_unstarted

    def release(self: Sender) -> None:
        release_unstarted(self)
        server.gate.set()

    monkeypatch.setattr(Sender, "release_unstarted", release)


def only_delivery() -> Delivery:
    return Delivery.objects.get()
