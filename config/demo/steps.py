"""The parts of `manage.py demo`: steps that are printed with a mark and a time, HTTP calls, events."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import requests
from django.core.management.base import CommandError

from config.operations import own_requests
from webhooks_core.management.printable import printable
from webhooks_core.signing.receiver import Receiver
from webhooks_core.signing.verification import Received, verify

REQUEST_S, TOLERANCE_S = 15, 60
SHOWN = 300  # characters of an answer


class StepError(CommandError):
    """A step failed; the message may quote what answered, which need not be an instance."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class Instance:
    """Calls a running instance, and prints each step with its values when it ends."""

    def __init__(self, url: str, say: Callable[[str], None], timeout_s: float) -> None:
        """`timeout_s` is how long to wait for an event."""
        self.url, self.timeout_s, self._say = url, timeout_s, say
        self._session = own_requests.session()
        self._values: list[str] = []

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Print whether the block succeeded, and how long it took. Raises StepError."""
        started, mark = time.monotonic(), "✘"
        try:
            yield
            mark = "✔"
        except requests.RequestException as error:
            raise StepError(
                f"nothing answers at {self.url} ({type(error).__name__}): start it with "
                "`make run`, or name another address with --url"
            ) from error
        finally:
            self._say(f"{mark} {title} ({time.monotonic() - started:.2f} s)")
            for line in self._values:
                self._say(line)
            self._values.clear()

    def show(self, **values: object) -> None:
        """Print values below the step that ends next."""
        for name, value in values.items():
            label = name.replace("_", " ")
            self._values.append(f"    {label:<10} {printable(str(value))}")

    def use(self, token: str) -> None:
        self._session.headers["Authorization"] = f"Bearer {token}"

    def request(
        self, method: str, path: str, *expect: int, **options: Any
    ) -> requests.Response:
        """Return a response with one of these statuses, by default 200. Raises StepError."""
        url = self.url + path
        response = self._session.request(method, url, timeout=REQUEST_S, **options)
        expect = expect or (200,)
        if response.status_code not in expect:
            raise StepError(
                f"{method} {path} answered {response.status_code}, not {expect[0]}: "
                f"{response.text[:SHOWN]}"
            )
        return response

    def call(self, method: str, path: str, expect: int = 200, json: Any = None) -> Any:
        """Return the JSON object of a response. Raises StepError."""
        response = self.request(method, path, expect, json=json)
        try:
            body = response.json()
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise StepError(
                f"{method} {path} answered no JSON object: {response.text[:SHOWN]}"
            )
        return body


@dataclass(frozen=True, slots=True)
class Subscribed:
    """A subscription of the local receiver, and what arrives there."""

    path: str
    secret: str
    arrived: queue.Queue[Received]

    def next_event(self, timeout_s: float) -> Received:
        """Wait for an event and verify it. Raises StepError."""
        try:
            received = self.arrived.get(timeout=timeout_s)
        except queue.Empty:
            raise StepError(
                f"nothing arrived within {timeout_s:.0f} s: is the task cluster running "
                "(`manage.py qcluster`), on the same database?"
            ) from None
        secrets = [self.secret]
        verification = verify(received, secrets=secrets, tolerance_s=TOLERANCE_S)
        if not verification.is_verified:
            raise StepError(verification.message)
        return received


@contextmanager
def subscription(
    instance: Instance,
    title: str,
    path: str,
    events: dict[str, list[str]],
    statuses: Sequence[int] = (204,),
) -> Iterator[Subscribed]:
    """Listen on loopback, subscribed at a path, while the block runs. Raises StepError."""
    arrived: queue.Queue[Received] = queue.Queue()

    def keep(received: Received, _status: int) -> None:
        arrived.put(received)

    with Receiver("127.0.0.1", 0, on_request=keep, statuses=statuses) as receiver:
        args = (0.05,)  # seconds until it notices its end
        threading.Thread(target=receiver.serve_forever, args=args, daemon=True).start()
        try:
            with instance.step(title):
                body = {"url": f"{receiver.url}/hook", **events}
                created = instance.call("POST", path, expect=201, json=body)
                public_id = created.get("endpoint_id") or created["id"]
                instance.show(url=body["url"], id=public_id)
            path = f"{path}/{public_id}"
            try:
                yield Subscribed(path, created["secret"], arrived)
            finally:
                with instance.step("The subscription is deleted"):
                    instance.request("DELETE", path, 200, 204)
        finally:
            receiver.shutdown()
