"""The body of a streamed response: its chunks, and a last event after a failure."""

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
from gateway.chat.streaming.opened import OpenedStream
from gateway.chat.streaming.timeouts import StreamTimeout
from gateway.chat.streaming.transformer import Transformer

# The wait for the usage after the finish reason, which already completes the stream.
USAGE_WAIT_S = 2.0
# The wait for the end of a stream after `[DONE]`.
CLOSING_S = 0.5
NO_FINISH_REASON = "no finish reason"

log = structlog.stdlib.get_logger(__name__)


async def events(
    context: ChatContext, opened: OpenedStream, end: Callable[[ChatContext, int], None]
) -> AsyncGenerator[bytes]:
    """Yield the framed events of a stream; those that arrive together stay together.

    In every case this closes the upstream's call, and calls `end`, first with the status that
    counts.
    """
    transformer = opened.transformer
    try:
        async with aclosing(opened.events):
            try:
                async for data in _transformed(context, opened):
                    yield data
                yield transformer.end()
            except Exception as error:  # noqa: BLE001 - the client gets a last event
                yield transformer.flush_all() + _failure(context, error)
            opened.note_tokens(context)
            # The client has everything, and may leave now.
            end(context, 200)
            if transformer.is_done:
                await _read_to_end(opened.events)
    finally:
        opened.note_tokens(context)
        end(context, CLIENT_GONE)


async def _transformed(
    context: ChatContext, opened: OpenedStream
) -> AsyncGenerator[bytes]:
    """Yield what is ready, then read more. Raises TimeoutError, or as chunks.understand()."""
    transformer, timeouts = opened.transformer, context.endpoint.timeouts
    try:
        yield transformer.flush()
        if opened.fault is not None:
            raise opened.fault
        elapsed_s = context.elapsed() - context.called_at_s
        with StreamTimeout(timeouts.total_s, elapsed_s=elapsed_s) as timeout:
            received_at = monotonic()
            while not transformer.is_done:
                timeout.start(_read_timeout(transformer, timeouts.idle_s, received_at))
                payloads = await anext(opened.events, None)
                timeout.stop()
                if payloads is None:
                    break
                transformer.feed(payloads)
                if data := transformer.flush():
                    yield data
                if payloads:
                    received_at = monotonic()
    except (TimeoutError, ChatError) as error:
        # After the finish reason at most the usage is missing.
        if not transformer.has_finished:
            raise
        request_id, reason = context.request_id, str(error)[:200]
        log.info("finished stream not ended", request_id=request_id, reason=reason)
    _check_end(context, transformer)


def _check_end(context: ChatContext, transformer: Transformer) -> None:
    """Raise UpstreamServiceError for a stream that is not complete."""
    if not transformer.is_complete:
        raise UpstreamServiceError("the stream ended in the middle")
    if not transformer.has_finished:
        context.ending = NO_FINISH_REASON
        if context.endpoint.strict_end:
            raise UpstreamServiceError(NO_FINISH_REASON)
        log.info(NO_FINISH_REASON, request_id=context.request_id)


def _read_timeout(transformer: Transformer, idle_s: float, received_at: float) -> float:
    if transformer.goes_on:
        return idle_s
    return min(idle_s, received_at + USAGE_WAIT_S - monotonic())


async def _read_to_end(upstream: AsyncGenerator[list[bytes]]) -> None:
    """Read until the upstream ends the stream, so that its connection can be used again."""
    with suppress(TimeoutError, UpstreamServiceError):
        async with asyncio.timeout(CLOSING_S):
            while await anext(upstream, None) is not None:
                pass


def _failure(context: ChatContext, error: Exception) -> bytes:
    if isinstance(error, TimeoutError):
        error = UpstreamServiceError("the upstream sent nothing in time")
    context.error_status, context.failure = look_up(
        AFTER_FIRST_CHUNK, error, context.request_id
    )
    if isinstance(error, ChatError):
        log.warning(
            "stream failed",
            request_id=context.request_id,
            model=context.endpoint.name,
            reason=str(error)[:200],
        )
    else:
        log.error("stream failed", request_id=context.request_id, exc_info=error)
    return context.api_format.error_event(error, context.request_id)
