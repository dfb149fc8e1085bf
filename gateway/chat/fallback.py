"""Calls of an endpoint: its targets in turn until one succeeds, none after the first chunk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import structlog

from gateway.chat.core.context import ChatContext
from gateway.chat.core.errors import ChatError, UpstreamServiceError
from gateway.chat.operations.base import Operation
from gateway.chat.routing import Router
from gateway.chat.streaming.opened import OpenedStream
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

    async def complete(self, context: ChatContext, operation: Operation) -> bytes:
        """Return the body for the client. Raises as Upstream's methods do."""

        async def call(upstream: Upstream, job: Job) -> bytes:
            return await operation.complete(upstream, job, context)

        return await self._first_success(context, call)

    async def open_stream(
        self, context: ChatContext, operation: Operation
    ) -> OpenedStream:
        """Return a stream once its first chunk has come. Raises as Upstream's methods do."""

        async def call(upstream: Upstream, job: Job) -> OpenedStream:
            opened = await operation.open(upstream, job, context)
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
