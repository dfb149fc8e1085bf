"""A receiver of MCP Events: it verifies with the package standardwebhooks, and answers challenges."""

import base64
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
from standardwebhooks import Webhook, WebhookVerificationError

from tests.receiver import Received, Receiver


def make_secret(size: int = 32) -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(size)).decode()


class Callback(Receiver):
    """Answers 401 to what none of its secrets verifies; `statuses` are for events.

    `challenge` replaces the answer to a challenge: a status and a body.
    """

    def __init__(self, *statuses: int, **options: Any) -> None:
        super().__init__(*statuses, **options)
        self.secrets: list[str] = []
        self.challenge: tuple[int, bytes] | None = None
        self.asked: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []

    def _next(self, request: Received) -> int:
        status = super()._next(request)
        body = self._verified(request)
        self.answer = b""
        if body is None:
            return 401
        if body.get("type") != "verification":
            self.events.append(body)
            return status
        self.asked.append(body)
        answer = 200, orjson.dumps({"challenge": body["challenge"]})
        status, self.answer = self.challenge or answer
        return status

    def _verified(self, request: Received) -> dict[str, Any] | None:
        for secret in self.secrets:
            try:
                body: dict[str, Any] = Webhook(secret).verify(
                    request.body, {k.lower(): v for k, v in request.headers.items()}
                )
            except WebhookVerificationError:
                continue
            return body
        return None

    @property
    def delivery(self) -> dict[str, str]:
        """Return the parameter `delivery` of `events/subscribe`."""
        if not self.secrets:
            self.secrets.append(make_secret())
        return {"mode": "webhook", "url": self.url, "secret": self.secrets[-1]}


@contextmanager
def callback(*statuses: int, **options: Any) -> Iterator[Callback]:
    with Callback(*statuses, **options).running() as running:
        assert isinstance(running, Callback)
        yield running
