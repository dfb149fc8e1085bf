"""A small receiver of webhooks on this machine, for development: it reads and verifies requests."""

from __future__ import annotations

import itertools
import socketserver
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

import orjson

from webhooks_core import profiles
from webhooks_core.profiles import WebhookProfile
from webhooks_core.signing.schemes import SignatureError, SignatureHeaders


@dataclass(frozen=True, slots=True)
class Received:
    """A POST as received; header names are in lower case, `at` is unix time in seconds."""

    headers: Mapping[str, str]
    body: bytes
    at: float

    @property
    def event_type(self) -> str:
        return self._header("event") or self._field("type")

    @property
    def delivery_id(self) -> str:
        return self._header("delivery")

    @property
    def event_id(self) -> str:
        return self._field("id") or self._field("event_id")

    @property
    def signed_by(self) -> list[WebhookProfile]:
        """The products whose signature header it has; they may share a prefix."""
        return [
            profile
            for profile in profiles.registered()
            if profile.signature_header.lower() in self.headers
        ]

    def _header(self, name: str) -> str:
        ours = (profile.header_prefix.lower() for profile in profiles.registered())
        return next(filter(None, (self.headers.get(f"{p}-{name}") for p in ours)), "")

    def _field(self, name: str) -> str:
        try:
            value = orjson.loads(self.body)[name]
        except (ValueError, TypeError, KeyError):  # no JSON object
            return ""
        return value if isinstance(value, str) else ""


class Verification(NamedTuple):
    """Whether a signature is genuine: `is_verified` is None if there was no secret to check with."""

    is_verified: bool | None
    message: str


def verify(
    received: Received, *, secrets: Sequence[str], tolerance_s: float = 300
) -> Verification:
    """Check the signature with each secret; say why if none fits."""
    if not received.signed_by:
        known = [profile.signature_header for profile in profiles.registered()]
        return Verification(False, f"not signed: no {' or '.join(known)}")
    if not secrets:
        name = received.signed_by[0].name
        return Verification(None, f"{name} signature, not checked: no secret was given")
    refusals = []
    for profile in received.signed_by:
        headers = SignatureHeaders.of(received.headers, profile.header_prefix)
        for secret in secrets:
            try:
                profile.scheme.verify(
                    secret,
                    headers,
                    body=received.body,
                    now=received.at,
                    tolerance_s=tolerance_s,
                )
            except SignatureError as error:
                refusals.append(f"{profile.name} signature refused: {error}")
            else:
                return Verification(True, f"{profile.name} signature verified")
    return Verification(False, refusals[-1])


IDLE_S = 60
HOST = "127.0.0.1"


class Receiver(socketserver.ThreadingTCPServer):
    """Responds to each POST, after a call of `on_request` with the request and the status.

    The n-th request gets the n-th status; the last one repeats. `on_request` is called from many
    threads. Port 0 is any free one.
    """

    # Not an HTTPServer, which resolves the host's name: that may be slow and needs the network.
    allow_reuse_address = daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        port: int,
        *,
        on_request: Callable[[Received, int], None],
        statuses: Sequence[int] = (204,),
    ) -> None:
        self.on_request = on_request
        self.statuses = itertools.chain(statuses, itertools.repeat(statuses[-1]))
        super().__init__((HOST, port), _Handler)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status = next(self.server.statuses)
        self.server.on_request(Received(headers, body, time.time()), status)
        self.send_response(status)
        if status not in {204, 304}:  # which have no body
            self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Log nothing: the caller shows what was received."""
