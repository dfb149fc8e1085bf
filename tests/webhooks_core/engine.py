"""Run the engine in a test, and read its result."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import connection

from tests.receiver import Receiver
from webhooks_core.dispatch import dispatcher
from webhooks_core.dispatch.sender import Sender
from webhooks_core.models import Delivery


def dispatch(**options: Any) -> int:
    """Send what is due now; do not wait for what is due later."""
    return dispatcher.dispatch(**{"linger": timedelta(0)} | options)


@contextmanager
def running_dispatcher(at_end: Callable[[], object] = list) -> Iterator[None]:
    """Run the engine beside the test; `at_end` wakes it up to end."""
    stopped = threading.Event()

    def work() -> None:
        try:
            dispatch(stop=stopped.is_set, resident=True)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        at_end()
        thread.join()


def answer_after_release(monkeypatch, server: Receiver) -> None:
    """Open the gate of a receiver when what has not been started is released."""
    stop = Sender.stop

    def release(self: Sender) -> None:
        stop(self)
        server.gate.set()

    monkeypatch.setattr(Sender, "stop", release)


def only_delivery() -> Delivery:
    return Delivery.objects.get()
