"""The body of a streamed answer: chunks as they come, and a last event when one fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from time import monotonic

import structlog

from gateway.chat.context import CLIENT_GONE, ChatContext
from gateway.chat.errors import (
    AFTER_FIRST_CHUNK,
    ChatError,
    UpstreamServiceError,
    look_up,
)
from gateway.chat.fallback import Opened
from gateway.chat.streaming.timeouts import StreamTimeout
from gateway.chat.streaming.transform import ChunkTransformer

# How long the usage is waited for after the finish reason, which ends the answer itself.
USAGE_WAIT_S = 2.0
# How long an upstream may take to close a stream of which it has said that it is over.
CLOSING_S = 0.5

log = structlog.stdlib.get_logger(__name__)


async def events(
    exchange: ChatContext, opened: Opened, end: Callable[[ChatContext, int], None]
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
            _note_tokens(exchange, relay)
            if relay.is_done:
                await _read_out(opened.events)
        end(exchange, 200)
    finally:
        _note_tokens(exchange, relay)
        end(exchange, CLIENT_GONE)


def _note_tokens(exchange: ChatContext, relay: ChunkTransformer) -> None:
    exchange.usage = relay.usage or exchange.usage
    exchange.completion_characters = relay.characters


async def _relayed(exchange: ChatContext, opened: Opened) -> AsyncGenerator[bytes]:
    """Yield what is ready, then read on. Raises what the upstream's failure stands for."""
    relay, timeouts = opened.relay, exchange.endpoint.timeouts
    try:
        yield relay.flush()
        if opened.fault is not None:
            raise opened.fault
        with StreamTimeout(timeouts.total_s, elapsed_s=exchange.elapsed()) as watch:
            heard_at = monotonic()
            while not relay.is_done:
                watch.start(_patience(relay, timeouts.idle_s, heard_at))
                payloads = await anext(opened.events, None)
                watch.stop()
                if payloads is None:
                    break
                relay.feed(payloads)
                if data := relay.flush():
                    yield data
                if payloads:
                    heard_at = monotonic()
    except (TimeoutError, ChatError) as error:
        # After the finish reason nothing is missing, except perhaps the usage.
        if not relay.has_finished:
            raise
        request_id, reason = exchange.request_id, str(error)[:200]
        log.info("finished stream not ended", request_id=request_id, reason=reason)
    if not relay.is_complete:
        raise UpstreamServiceError("the stream ended in the middle")


def _patience(relay: ChunkTransformer, idle_s: float, heard_at: float) -> float:
    """Return for how many seconds the next read is waited for."""
    if not relay.has_finished:
        return idle_s
    return min(idle_s, heard_at + USAGE_WAIT_S - monotonic())


async def _read_out(upstream: AsyncGenerator[list[bytes]]) -> None:
    """Read to the end of the connection, so that it can be used again."""
    with suppress(TimeoutError, UpstreamServiceError):
        async with asyncio.timeout(CLOSING_S):
            while await anext(upstream, None) is not None:
                pass


def _failure(exchange: ChatContext, error: Exception) -> bytes:
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
