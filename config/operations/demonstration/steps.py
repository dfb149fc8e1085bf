"""What `manage.py demo` is made of: steps that are told with a tick and a time, and HTTP calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import requests

from config.operations import own_requests

TIMEOUT_S = 15
SHOWN = 300


class StepError(Exception):
    """A step failed; the message says what was seen and, where it is known, what to do."""


@dataclass(slots=True)
class Steps:
    """Tells of steps as they end, and of what was seen in each."""

    say: Callable[[str], None]
    _seen: list[str] = field(default_factory=list)

    @contextmanager
    def step(self, told: str) -> Iterator[None]:
        """Do something; tell whether it went well and how long it took."""
        began = time.monotonic()
        try:
            yield
        except BaseException:
            self._tell("✘", told, began)
            raise
        self._tell("✔", told, began)

    def saw(self, name: str, value: object) -> None:
        """Show a value under the step that is being done."""
        self._seen.append(f"    {name:<10} {value}")

    def _tell(self, mark: str, told: str, began: float) -> None:
        self.say(f"{mark} {told} ({time.monotonic() - began:.2f} s)")
        for line in self._seen:
            self.say(line)
        self._seen.clear()


@dataclass(slots=True)
class Client:
    """Calls an instance over HTTP, and takes nothing but the expected answer."""

    url: str
    token: str = ""
    _session: requests.Session = field(default_factory=own_requests.session)

    def call(
        self, method: str, path: str, *, expect: int = 200, json: Any = None
    ) -> dict[str, Any]:
        """Return the object that was answered. Raises StepError."""
        answer = self.answer(method, path, json=json)
        if answer.status_code != expect:
            raise StepError(
                f"{method} {path} answered {answer.status_code}, not {expect}: "
                f"{answer.text[:SHOWN]}"
            )
        try:
            body = answer.json()
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise StepError(
                f"{method} {path} answered no JSON object: {answer.text[:SHOWN]}"
            )
        return body

    def lines(self, path: str, *, json: Any) -> Iterator[bytes]:
        """Yield the lines of a streamed answer as they come. Raises StepError."""
        with self.answer("POST", path, json=json, stream=True) as answer:
            if answer.status_code != 200:
                raise StepError(
                    f"POST {path} answered {answer.status_code}: {answer.text[:SHOWN]}"
                )
            try:
                yield from answer.iter_lines()
            except requests.RequestException as error:
                raise StepError(f"the stream of {path} was cut off") from error

    def answer(
        self, method: str, path: str, *, json: Any = None, stream: bool = False
    ) -> requests.Response:
        """Return whatever was answered. Raises StepError when nothing was."""
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
