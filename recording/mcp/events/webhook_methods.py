"""The methods of MCP Events that need a client: for webhooks, and for streams."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from django.contrib.auth.models import AbstractUser
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from rest_framework.request import Request
from rest_framework.views import APIView

from recording.mcp import calls
from recording.mcp.events import challenges, clients, requests, streams, subscribing
from recording.mcp.events.challenges import Challenge
from recording.mcp.events.conf import option
from recording.mcp.events.cursors import Position
from recording.mcp.events.errors import (
    EventsError,
    ResourceExhaustedError,
    UnsupportedError,
)
from recording.mcp.events.subscribing import Key, Subscribing
from recording.throttles import AccountThrottle, ChallengedHostThrottle
from webhooks_core.web import event_loop
from webhooks_core.web.errors import TooManyRequestsError

Params = Mapping[str, Any]


def subscribe(params: Params) -> dict[str, Any]:
    request = calls.request.get()
    asked = subscribing_of(request, params)
    if (challenge := asked.challenge()) is not None:
        outcome = request.META.get(event_loop.RESULT)
        if outcome is None:
            _count(request, challenge)
            outcome = asyncio.run(challenge.run())
        challenges.check(outcome)
    return asked.store()


def stream(params: Params) -> dict[str, Any]:
    """Open a stream, which the view hands to the event loop; this result is not sent."""
    request = calls.request.get()
    asked = requests.read(requests.StreamParams, params)
    subject = asked.subject(calls.account().pk)
    version = request.headers.get("MCP-Protocol-Version")
    is_modern = version in MODERN_PROTOCOL_VERSIONS
    is_offered = event_loop.OFFERED in request.META and option("MCP_EVENTS_STREAMS")
    if not (is_modern and is_offered):
        raise UnsupportedError(
            "events/stream needs protocol 2026-07-28, and a server that offers it;"
            " events/poll returns the same events",
            feature="deliveryMode",
            value="push",
        )
    request.META[event_loop.STREAM] = streams.open_stream(
        subject,
        asked.cursor,
        max_age_ms=asked.max_age_ms,
        client=clients.of(request),
    )
    return {}


def work(request: Request, params: Params) -> Callable[[], Awaitable[str]] | None:
    """Return what the event loop has to do before subscribe(), if it is valid and needs it."""
    try:
        challenge = subscribing_of(request, params).challenge()
        if challenge is None:
            return None
        _count(request, challenge)
    except EventsError:
        return None  # subscribe() refuses it
    return challenge.run


def _count(request: Request, challenge: Challenge) -> None:
    """Count a challenge of the account and of the host. Raises ResourceExhaustedError."""
    host = ChallengedHostThrottle(urlsplit(challenge.url).hostname or "")
    try:
        for throttle in (AccountThrottle("challenge"), host):
            throttle.allow_request(request, APIView())
    except TooManyRequestsError as error:
        raise ResourceExhaustedError(str(error.detail), limit="challenges") from error


def unsubscribe(params: Params) -> dict[str, Any]:
    asked = requests.read(requests.UnsubscribeParams, params)
    return subscribing.unsubscribe(_key(calls.request.get(), asked))


def subscribing_of(request: Request, params: Params) -> Subscribing:
    """Return a valid request to subscribe; this resolves the host of its URL.

    Raises an EventsError.
    """
    asked = requests.read(requests.SubscribeParams, params)
    if asked.delivery.mode != "webhook":
        raise UnsupportedError(
            "events/subscribe is for webhooks alone",
            feature="deliveryMode",
            value=asked.delivery.mode,
        )
    key = _key(request, asked)
    subscribing.check_secret(asked.delivery.secret)
    subscribing.check_url(key.url)
    cursor, account = asked.cursor, key.account.pk
    # Null suggests that there is no end; without a value nothing is suggested.
    has_ttl = "ttl_ms" in asked.model_fields_set
    return Subscribing(
        key=key,
        secret=asked.delivery.secret,
        ttl_ms=asked.ttl_ms if has_ttl else subscribing.UNSET,
        position=None if cursor is None else Position.read(cursor, account=account),
        max_age_ms=asked.max_age_ms,
    )


def _key(
    request: Request, asked: requests.SubscribeParams | requests.UnsubscribeParams
) -> Key:
    account = cast("AbstractUser", request.user)
    url = asked.delivery.url
    return Key(account, clients.of(request), url, asked.subject(account.pk))
