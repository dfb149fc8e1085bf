"""The challenge: a callback URL gets events only after its receiver has agreed to them."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from typing import Any

import orjson

from recording.mcp.events.errors import EventsError
from recording.webhooks import EVENTS_PROFILE
from webhooks_core import profiles
from webhooks_core.dispatch.signer import standard_headers
from webhooks_core.network.errors import Outcome
from webhooks_core.network.transport import (
    AttemptResult,
    OutgoingRequest,
    attempt,
    connections_in,
)
from webhooks_core.profiles import SigningContext

# The answer's body may take one second more: READ_FOR_S of the transport.
ANSWER_S = 4.0
CHALLENGE_FAILED = "challenge_failed"


async def ask(url: str, secret: str, subscription_id: str) -> None:
    """Ask the receiver of a URL. Raises EventsError with the class of a failure, not its words."""
    nonce = secrets.token_urlsafe(32)
    body = orjson.dumps({"type": "verification", "challenge": nonce})
    message_id = f"msg_verification_{secrets.token_hex(12)}"

    def sign(timestamp: int) -> dict[str, str]:
        context = SigningContext(message_id, "", "", timestamp, body, [secret])
        return {
            "Content-Type": "application/json",
            "X-MCP-Subscription-Id": subscription_id,
            **standard_headers(context),
        }

    networks = profiles.get(EVENTS_PROFILE).url_policy.allowed_networks(url)
    connections = connections_in(networks, asyncio.get_running_loop())
    try:
        result = await attempt(
            OutgoingRequest(
                key=0,
                queue=0,
                limit=1,
                url=url,
                body=body,
                sign=sign,
                timeout_s=ANSWER_S,
                networks=networks,
            ),
            connections,
        )
    finally:
        connections.close()
    if reason := _failure(result, nonce):
        raise EventsError(
            "CallbackEndpointError",
            'it must answer 200 with {"challenge": "<the same text>"} within 5 s',
            reason=reason,
        )


def _failure(result: AttemptResult, nonce: str) -> str:
    """Return "" if the receiver agrees, otherwise a class of SEP-3415."""
    match result.outcome:
        case Outcome.OK:
            agrees = hmac.compare_digest(_echo(result.body), nonce.encode())
            return "" if agrees else CHALLENGE_FAILED
        case Outcome.HTTP:
            status = result.status_code or 0
            # A redirect is not followed.
            return f"http_{status // 100}xx" if status >= 400 else CHALLENGE_FAILED
        case Outcome.TIMEOUT:
            return "timeout"
        case Outcome.TLS:
            return "tls_error"
        case _:
            return "connection_refused"


def _echo(body: bytes) -> bytes:
    try:
        answer: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return b""
    echoed = answer.get("challenge") if isinstance(answer, dict) else None
    return echoed.encode() if isinstance(echoed, str) else b""
