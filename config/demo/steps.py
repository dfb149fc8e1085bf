"""The parts of `manage.py demo`: steps that are printed with a mark and a time, and HTTP calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import requests

from config.operations import own_requests
from webhooks_core.management.printable import printable

TIMEOUT_S = 15
SHOWN = 300


class StepError(Exception):
    """A step failed; the message says what happened and, where it is known, what to do.

    It may quote what answered, which need not be an instance.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


@dataclass(slots=True)
class Steps:
    """Prints each step when it ends, and the values of that step."""

    say: Callable[[str], None]
    _values: list[str] = field(default_factory=list)

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Print whether the block succeeded, and how long it took."""
        started, mark = time.monotonic(), "✘"
        try:
            yield
            mark = "✔"
        finally:
            self.say(f"{mark} {title} ({time.monotonic() - started:.2f} s)")
            for line in self._values:
                self.say(line)
            self._values.clear()

    def show(self, name: str, value: object) -> None:
        """Print a value below the step that ends next."""
        self._values.append(f"    {name:<10} {printable(str(value))}")


@dataclass(slots=True)
class Client:
    """Calls an instance over HTTP."""

    url: str
    token: str = ""
    _session: requests.Session = field(default_factory=own_requests.session)

    def call(
        self, method: str, path: str, *, expect: int = 200, json: Any = None
    ) -> dict[str, Any]:
        """Return the JSON object of a response with this status. Raises StepError."""
        response = self.request(method, path, json=json)
        if response.status_code != expect:
            raise StepError(
                f"{method} {path} answered {response.status_code}, not {expect}: "
                f"{response.text[:SHOWN]}"
            )
        try:
            body = response.json()
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise StepError(
                f"{method} {path} answered no JSON object: {response.text[:SHOWN]}"
            )
        return body

    def lines(self, path: str, *, json: Any) -> Iterator[bytes]:
        """Yield the lines of a streamed response as they arrive. Raises StepError."""
        with self.request("POST", path, json=json, stream=True) as response:
            if response.status_code != 200:
                raise StepError(
                    f"POST {path} answered {response.status_code}: {response.text[:SHOWN]}"
                )
            try:
                yield from response.iter_lines()
            except requests.RequestException as error:
                raise StepError(f"the stream of {path} was cut off") from error

    def request(
        self, method: str, path: str, *, json: Any = None, stream: bool = False
    ) -> requests.Response:
        """Return any response. Raises StepError if there is none."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            return self._session.request(
                method,
                self.url + path,
                json=json,
                headers=headers,
                timeout=TIMEOUT_S,
                stream=stream,
            )
        except requests.RequestException as error:
            raise StepError(
                f"nothing answers at {self.url} ({type(error).__name__}): start it with "
                "`make run`, or name another address with --url"
            ) from error
