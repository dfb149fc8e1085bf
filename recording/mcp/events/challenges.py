"""The challenge: a callback URL gets events only after its receiver has agreed to them."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from dataclasses import dataclass
from typing import Any

import orjson

from recording.mcp.events.errors import EventsError
from recording.webhooks import EVENTS_PROFILE
from webhooks_core import profiles
from webhooks_core.dispatch.signer import standard_headers
from webhooks_core.network.deadlines import Deadlines
from webhooks_core.network.outcomes import Outcome
from webhooks_core.network.transport import (
    AttemptResult,
    Client,
    OutgoingRequest,
    attempt,
)
from webhooks_core.profiles import SigningContext

# The answer's body may take one second more: READ_FOR_S of the transport.
ANSWER_S = 4.0
CHALLENGE_FAILED = "challenge_failed"
# What callers learn of a receiver: these classes, and none of its words (SEP-3415).
CATEGORIES = {Outcome.TIMEOUT: "timeout", Outcome.TLS: "tls_error"}
EXPLANATIONS = {
    "connection_refused": "no connection to its public address could be made",
    "timeout": "it did not answer within 5 s",
    "tls_error": "its certificate was refused",
    "http_4xx": "it answered the challenge with 4xx",
    "http_5xx": "it answered the challenge with 5xx",
    CHALLENGE_FAILED: 'it must answer 200 with {"challenge": "<the same text>"}',
}


def check(reason: str) -> None:
    """Accept the outcome of a challenge. Raises EventsError."""
    if reason:
        raise EventsError(
            "CallbackEndpointError",
            f"the callback was not verified: {EXPLANATIONS[reason]}",
            reason=reason,
        )


@dataclass(frozen=True)
class Challenge:
    """One question to the receiver of a URL."""

    url: str
    secret: str
    subscription_id: str

    async def run(self) -> str:
        """Ask; return "" if the receiver agrees, otherwise the class of its failure."""
        nonce = secrets.token_urlsafe(32)
        body = orjson.dumps({"type": "verification", "challenge": nonce})
        request = self._request(body)
        client = Client(request.networks, Deadlines(asyncio.get_running_loop()))
        try:
            result = await attempt(request, client)
        finally:
            client.close()
        return _verdict(result, nonce)

    def _request(self, body: bytes) -> OutgoingRequest:
        message_id = f"msg_verification_{secrets.token_hex(12)}"
        policy = profiles.get(EVENTS_PROFILE).url_policy

        def sign(timestamp: int) -> dict[str, str]:
            context = SigningContext(message_id, "", "", timestamp, body, [self.secret])
            return {
                "Content-Type": "application/json",
                "X-MCP-Subscription-Id": self.subscription_id,
                **standard_headers(context),
            }

        return OutgoingRequest(
            key=0,
            queue=0,
            limit=1,
            url=self.url,
            body=body,
            sign=sign,
            timeout_s=ANSWER_S,
            networks=policy.allowed_networks(self.url),
        )


def _verdict(result: AttemptResult, nonce: str) -> str:
    """Return "" if the receiver agrees, otherwise the class of its failure."""
    if result.outcome == Outcome.OK:
        echoed = _echo(result.body).encode(errors="replace")
        return "" if hmac.compare_digest(echoed, nonce.encode()) else CHALLENGE_FAILED
    if result.outcome == Outcome.HTTP and result.status_code is not None:
        if result.status_code < 400:
            return CHALLENGE_FAILED  # a redirect, which is not followed
        return "http_5xx" if result.status_code >= 500 else "http_4xx"
    return CATEGORIES.get(
        Outcome(result.outcome or Outcome.CONNECT), "connection_refused"
    )


def _echo(body: bytes) -> str:
    try:
        answer: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    echoed = answer.get("challenge") if isinstance(answer, dict) else None
    return echoed if isinstance(echoed, str) else ""
