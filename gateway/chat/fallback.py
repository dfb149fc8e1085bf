"""Calls of an endpoint: its targets in turn until one succeeds, none after the first chunk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import structlog

from gateway.chat.core import chunks, failures, json_numbers, off_loop
from gateway.chat.core.context import ChatContext
from gateway.chat.core.errors import ChatError, UpstreamServiceError
from gateway.chat.core.usage_tokens import text_length
from gateway.chat.routing import Router
from gateway.chat.streaming.opened import OpenedStream
from gateway.chat.streaming.transform import ChunkTransformer
from gateway.chat.upstreams.base import Job, Upstream
from gateway.configuration.shapes import Target
from webhooks_core.network.deadlines import within

T = TypeVar("T")
# Makes a call to an upstream.
Method = Callable[[Upstream, Job], Awaitable[T]]

log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FallbackCaller:
    """Calls the upstream of an endpoint."""

    upstreams: Mapping[str, Upstream]
    router: Router

    async def complete(
        self, context: ChatContext, method: Method[bytes], list_key: str
    ) -> bytes:
        """Return a body that has a list under a key, with the model's requested name.

        Raises as Upstream's methods do.
        """

        async def call(upstream: Upstream, job: Job) -> bytes:
            body = await method(upstream, job)
            check = partial(_checked, context, body, list_key)
            return await off_loop.run(check, size=len(body))

        return await self._first_success(context, call)

    async def open_stream(self, context: ChatContext) -> OpenedStream:
        """Return a stream once its first chunk has come. Raises as Upstream's methods do."""

        async def call(upstream: Upstream, job: Job) -> OpenedStream:
            transformer = ChunkTransformer(context.api_format, context.request)
            opened = OpenedStream(transformer, upstream.stream(job))
            try:
                with within(job.timeouts.first_byte_s):
                    await opened.read_first_chunk()
            except BaseException:
                await opened.events.aclose()
                raise
            context.first_chunk_s = context.elapsed()
            return opened

        return await self._first_success(context, call)

    async def _first_success(self, context: ChatContext, call: Method[T]) -> T:
        """Return the result of the first target that succeeds, within the total time."""
        try:
            with within(context.endpoint.timeouts.total_s):
                return await self._try_targets(context, call)
        except TimeoutError as error:
            failure = UpstreamServiceError("no answer within the total time")
            if context.target is not None:
                self._note_failure(context, context.target, failure)
            raise failure from error

    async def _try_targets(self, context: ChatContext, call: Method[T]) -> T:
        endpoint = context.endpoint
        upstream = self.upstreams[endpoint.upstream]
        failure = UpstreamServiceError("there is no target")
        for target in self.router.order(endpoint):
            try:
                result = await call(upstream, _job(context, target))
            except TimeoutError:
                failure = UpstreamServiceError("no answer in time")
            except UpstreamServiceError as error:
                failure = error
            except ChatError:
                raise  # the request is refused, wherever it goes
            except Exception as error:
                log.exception("target failed", request_id=context.request_id)
                failure = UpstreamServiceError(type(error).__name__)
            else:
                self.router.succeeded(endpoint, target)
                return result
            self._note_failure(context, target, failure)
        raise failure

    def _note_failure(
        self, context: ChatContext, target: Target, failure: UpstreamServiceError
    ) -> None:
        endpoint = context.endpoint
        self.router.failed(endpoint, target, retry_after=failure.retry_after)
        log.warning(
            "upstream failed",
            request_id=context.request_id,
            model=endpoint.name,
            upstream_model=target.model,
            reason=str(failure),
        )


def _job(context: ChatContext, target: Target) -> Job:
    """Return the call of a target; what an earlier one reported counts for nothing."""
    context.target, context.usage = target, None
    return Job(
        context.request,
        target,
        context.endpoint.timeouts,
        context.request_id,
        ask_usage=context.endpoint.stream_usage,
        thinking=context.endpoint.thinking,
        report=context.report,
    )


def _checked(context: ChatContext, body: bytes, list_key: str) -> bytes:
    """Return a body with the requested name of the model, and note its usage.

    Raises UpstreamServiceError, InvalidValueError.
    """
    value = chunks.parse(body, json_numbers.read)
    if failures.replaces_answer(value, list_key):
        raise failures.failure_in(value)
    if not isinstance(value.get(list_key), list):
        raise UpstreamServiceError(f"the answer has no {list_key}")
    _note_usage(context, value)
    model = context.request.model
    if value.get("model", model) == model:
        return body
    return chunks.rename(body, model)


def _note_usage(context: ChatContext, value: Mapping[str, Any]) -> None:
    """Note what an answer used; embeddings have no completion."""
    context.usage = usage = chunks.usage_in(value)
    if usage is not None and usage.completion_tokens is None:
        choices = value.get("choices")
        if isinstance(choices, list):
            messages = [c.get("message") for c in choices if isinstance(c, dict)]
            context.completion_characters = text_length(messages)
        else:
            context.usage = replace(usage, completion_tokens=0)
