"""Calls of an endpoint: its targets in turn until one succeeds, none after the first chunk.

Then the targets again, as often as `retries` says, and then the endpoints of `fallbacks`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import TypeVar
from urllib.parse import quote

import structlog

from gateway.chat.context import ChatContext
from gateway.chat.core import failures
from gateway.chat.errors import (
    ChatError,
    OverBudgetError,
    UnsupportedInferenceTypeError,
    UnsupportedRequestError,
    UpstreamServiceError,
)
from gateway.chat.operations.base import Operation
from gateway.chat.routing import Router
from gateway.chat.streaming.opened import OpenedStream
from gateway.chat.upstreams.base import Job, Upstream
from gateway.configuration.shapes import ModelEntry, Target
from webhooks_core.network.deadlines import within

T = TypeVar("T")
# Makes a call to an upstream.
Method = Callable[[Upstream, Job], Awaitable[T]]

ANSWERED_BY = "X-Signpost-Model"
# What a fallback raises that does not support the request, or whose budget is used up.
UNABLE = (
    UnsupportedRequestError,
    UnsupportedInferenceTypeError,
    OverBudgetError,
)
# The statuses besides 5xx after which a server may succeed; 0 is no answer.
PASSING = frozenset({0, 408, 409, 425, 429})
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 20.0

log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FallbackCaller:
    """Calls the upstream of an endpoint."""

    upstreams: Mapping[str, Upstream]
    router: Router
    # Holds what a request may use of a fallback. Raises OverBudgetError.
    reserve: Callable[[ChatContext], Awaitable[None]]

    async def complete(self, context: ChatContext, operation: Operation) -> bytes:
        """Return the body for the client. Raises as Upstream's methods do."""

        async def call(upstream: Upstream, job: Job) -> bytes:
            return await operation.complete(upstream, job, context)

        return await self._first_success(context, operation, call)

    async def open_stream(
        self, context: ChatContext, operation: Operation
    ) -> OpenedStream:
        """Return a stream once its first chunk has come. Raises as Upstream's methods do."""

        async def call(upstream: Upstream, job: Job) -> OpenedStream:
            opened = await operation.open(upstream, job, context)
            try:
                with within(job.entry.timeouts.first_byte_s):
                    await opened.read_first_chunk()
            except BaseException:
                await opened.events.aclose()
                raise
            context.first_chunk_s = context.elapsed()
            return opened

        return await self._first_success(context, operation, call)

    async def _first_success(
        self, context: ChatContext, operation: Operation, call: Method[T]
    ) -> T:
        """Return the result of the first endpoint that succeeds, which then is the context's."""
        requested = context.endpoint
        if not requested.falls_back:
            return await self._call_endpoint(context, call)
        try:
            result = await self._with_fallbacks(context, operation, call)
        except BaseException:
            context.endpoint = requested
            raise
        context.response_headers = {
            **context.response_headers,
            ANSWERED_BY: header_value(context.endpoint.name),
        }
        return result

    async def _with_fallbacks(
        self, context: ChatContext, operation: Operation, call: Method[T]
    ) -> T:
        requested, left = context.endpoint, dict(context.fallbacks)
        failure: ChatError
        try:
            return await self._call_endpoint(context, call)
        except ChatError as error:
            failure = error
        while (fallback := _next(requested, left, failure)) is not None:
            try:
                await operation.check(fallback, context.request)
                context.endpoint = fallback
                if operation.is_budgeted:
                    await self.reserve(context)
                log.warning(
                    "fallback called",
                    request_id=context.request_id,
                    model=requested.name,
                    fallback=fallback.name,
                )
                return await self._call_endpoint(context, call)
            except UNABLE:
                continue  # the failure before says more
            except ChatError as error:
                failure = error
        raise failure

    async def _call_endpoint(self, context: ChatContext, call: Method[T]) -> T:
        """Return the result of the first target that succeeds, within the total time."""
        if context.fallbacks:
            context.called_at_s = context.elapsed()
        try:
            with within(context.endpoint.timeouts.total_s):
                return await self._try_repeatedly(context, call)
        except TimeoutError as error:
            failure = UpstreamServiceError("no answer within the total time")
            if context.target is not None:
                self._note_failure(context, context.target, failure)
            raise failure from error

    async def _try_repeatedly(self, context: ChatContext, call: Method[T]) -> T:
        """Try the targets again after each pause that the endpoint's `retries` allow."""
        endpoint = context.endpoint
        for retry in range(endpoint.retries):
            try:
                return await self._try_targets(context, call)
            except UpstreamServiceError as failure:
                pause_s = _pause_s(failure, retry)
                total_s = endpoint.timeouts.total_s or inf
                elapsed_s = context.elapsed() - context.called_at_s
                if pause_s is None or elapsed_s + pause_s >= total_s:
                    raise
            await asyncio.sleep(pause_s)
        return await self._try_targets(context, call)

    async def _try_targets(self, context: ChatContext, call: Method[T]) -> T:
        endpoint = context.endpoint
        upstream = self.upstreams[endpoint.upstream]
        failure = UpstreamServiceError("there is no target")
        for target in self.router.order(endpoint):
            began_s = context.elapsed()
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
                seconds = context.elapsed() - began_s
                self.router.succeeded(endpoint, target, seconds)
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
        context.endpoint,
        context.request_id,
        report=context.report,
        headers=context.passed_headers,
        query=context.passed_query,
    )


def _next(
    requested: ModelEntry, left: dict[str, ModelEntry], failure: ChatError
) -> ModelEntry | None:
    """Take the next fallback for a failure; None if there is none, or a refusal is final."""
    names: Iterable[str] = ()
    if isinstance(failure, UpstreamServiceError):
        names = requested.fallbacks
    elif failures.is_too_long(failure):
        names = requested.context_fallbacks
    name = next((name for name in names if name in left), None)
    return None if name is None else left.pop(name)


def _pause_s(failure: UpstreamServiceError, retry: int) -> float | None:
    """Return the pause before a retry, None if none would help.

    A server that asks for more than LONGEST_PAUSE_S is not waited for.
    """
    status = failure.upstream.status
    if not (status in PASSING or status >= 500):
        return None
    if failure.retry_after > LONGEST_PAUSE_S:
        return None
    pause_s: float = FIRST_PAUSE_S * 2**retry * random.uniform(0.5, 1)  # noqa: S311 - no secret
    return max(failure.retry_after, min(pause_s, LONGEST_PAUSE_S))


def header_value(name: str) -> str:
    """Return the name of an endpoint as it can stand in a header."""
    return name if name.isascii() and name.isprintable() else quote(name)
