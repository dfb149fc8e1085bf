"""The body of a streamed answer: chunks as they come, and a last event when one fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress

import structlog

from gateway.chat.calls import Opened
from gateway.chat.errors import (
    AFTER_FIRST_CHUNK,
    ChatError,
    UpstreamServiceError,
    look_up,
)
from gateway.chat.exchange import CLIENT_GONE, Exchange
from gateway.chat.watch import Watch

# How long an upstream may take to close a stream of which it has said that it is over.
CLOSING_S = 0.5

log = structlog.stdlib.get_logger(__name__)


async def events(
    exchange: Exchange, opened: Opened, end: Callable[[Exchange, int], None]
) -> AsyncGenerator[bytes]:
    """Yield the framed events of a stream, those together that came together.

    Whatever becomes of it, the upstream's call is closed and `end` is called once.
    """
    relay = opened.relay
    try:
        async with aclosing(opened.events):
            try:
                async for data in _relayed(exchange, opened):
                    yield data
                yield relay.last()
            except Exception as error:  # noqa: BLE001 - the client gets a last event
                yield relay.rest() + _failure(exchange, error)
            exchange.usage = relay.usage
            if relay.is_done:
                await _read_out(opened.events)
        end(exchange, 200)
    finally:
        exchange.usage = relay.usage
        end(exchange, CLIENT_GONE)


async def _relayed(exchange: Exchange, opened: Opened) -> AsyncGenerator[bytes]:
    """Yield what is ready, then read on. Raises what the upstream's failure stands for."""
    relay, timeouts = opened.relay, exchange.endpoint.timeouts
    yield relay.drain()
    if opened.fault is not None:
        raise opened.fault
    with Watch(timeouts.total_s, elapsed_s=exchange.elapsed()) as watch:
        while not relay.is_done:
            watch.expect(timeouts.idle_s)
            payloads = await _next(opened)
            watch.rest()
            if payloads is None:
                break
            relay.take(payloads)
            if data := relay.drain():
                yield data
    if not relay.is_complete:
        raise UpstreamServiceError("the stream ended in the middle")


async def _next(opened: Opened) -> list[bytes] | None:
    try:
        return await anext(opened.events, None)
    except UpstreamServiceError:
        if opened.relay.has_finished:
            return None  # nothing is missing but the end of the connection
        raise


async def _read_out(upstream: AsyncGenerator[list[bytes]]) -> None:
    """Read to the end of the connection, so that it can be used again."""
    with suppress(TimeoutError, UpstreamServiceError):
        async with asyncio.timeout(CLOSING_S):
            while await anext(upstream, None) is not None:
                pass


def _failure(exchange: Exchange, error: Exception) -> bytes:
    if isinstance(error, TimeoutError):
        error = UpstreamServiceError("the upstream went silent")
    exchange.error_status, _ = look_up(AFTER_FIRST_CHUNK, error, exchange.request_id)
    if isinstance(error, ChatError):
        log.warning(
            "stream failed",
            request_id=exchange.request_id,
            model=exchange.endpoint.name,
            reason=str(error)[:200],
        )
    else:
        log.error("stream failed", request_id=exchange.request_id, exc_info=error)
    return exchange.dialect.error_event(error, exchange.request_id)
