"""Calling an endpoint: its targets in turn until one answers, and none after the first chunk."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import structlog

from gateway.chat import exact_json
from gateway.chat.context import ChatContext
from gateway.chat.errors import (
    ChatError,
    InvalidRequestError,
    InvalidValueError,
    UpstreamServiceError,
)
from gateway.chat.metering.tokens import Usage
from gateway.chat.routing import Router
from gateway.chat.streaming import chunks
from gateway.chat.streaming.transform import ChunkTransformer
from gateway.chat.upstreams.base import Job, Upstream
from gateway.configuration.shapes import Target
from webhooks_core.network.deadlines import within

T = TypeVar("T")

log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class Opened:
    """A stream of which the first chunk is there. `fault` came right behind that chunk."""

    transformer: ChunkTransformer
    events: AsyncGenerator[list[bytes]]
    fault: ChatError | None = None


@dataclass(frozen=True, slots=True)
class FallbackCaller:
    """Calls upstreams on behalf of exchanges."""

    upstreams: Mapping[str, Upstream]
    router: Router

    async def complete(
        self,
        context: ChatContext,
        method: Callable[[Upstream], Callable[[Job], Awaitable[bytes]]],
        key: str,
    ) -> bytes:
        """Return an answer, which has a list under `key`, under the name that was asked for.

        Raises as Upstream's methods do.
        """

        async def ask(upstream: Upstream, job: Job) -> bytes:
            answer = await method(upstream)(job)
            return _renamed(context, answer, key)

        return await self._first_to(context, ask)

    async def open_stream(
        self, context: ChatContext, new_transformer: Callable[[], ChunkTransformer]
    ) -> Opened:
        """Return a stream once its first chunk is there. Raises as Upstream's methods do."""

        async def ask(upstream: Upstream, job: Job) -> Opened:
            opened = Opened(new_transformer(), upstream.stream(job))
            try:
                with within(job.timeouts.first_byte_s):
                    await _begin(opened)
            except BaseException:
                await opened.events.aclose()
                raise
            context.first_chunk_s = context.elapsed()
            return opened

        return await self._first_to(context, ask)

    async def _first_to(
        self, context: ChatContext, ask: Callable[[Upstream, Job], Awaitable[T]]
    ) -> T:
        """Return what the first target that is not in trouble gives, within the total time."""
        try:
            with within(context.endpoint.timeouts.total_s):
                return await self._in_turn(context, ask)
        except TimeoutError as error:
            failure = UpstreamServiceError("no answer within the total time")
            if context.target is not None:
                self._note(context, context.target, failure)
            raise failure from error

    async def _in_turn(
        self, context: ChatContext, ask: Callable[[Upstream, Job], Awaitable[T]]
    ) -> T:
        endpoint = context.endpoint
        upstream = self.upstreams[endpoint.upstream]
        failure = UpstreamServiceError("there is no target")
        for target in self.router.order(endpoint):
            context.target = target
            try:
                found = await ask(upstream, context.job(target))
            except TimeoutError:
                failure = UpstreamServiceError("no answer in time")
            except UpstreamServiceError as error:
                failure = error
            else:
                self.router.succeeded(endpoint, target)
                return found
            self._note(context, target, failure)
        raise failure

    def _note(
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


async def _begin(opened: Opened) -> None:
    """Read up to the first chunk."""
    transformer = opened.transformer
    while not transformer.has_begun:
        try:
            payloads = await anext(opened.events, None)
        except ChatError as error:
            raise _refused(error) from error
        if payloads is None:
            raise UpstreamServiceError("the stream ended before its first chunk")
        opened.fault = _fault_in(transformer, payloads)
        if opened.fault is not None and not transformer.chunks:
            raise _refused(opened.fault)


def _fault_in(transformer: ChunkTransformer, payloads: list[bytes]) -> ChatError | None:
    try:
        transformer.feed(payloads)
    except ChatError as error:
        return error
    return None


def _refused(error: ChatError) -> ChatError:
    """Return a failure as it is raised while nothing was sent: a refusal is a bad value."""
    if not isinstance(error, InvalidRequestError):
        return error
    refusal = InvalidValueError(*error.args)
    refusal.upstream = error.upstream
    return refusal


def _renamed(context: ChatContext, answer: bytes, key: str) -> bytes:
    value = chunks.parse(answer, exact_json.read)
    if value.get("error"):
        raise chunks.failure_in(value)
    if not isinstance(value.get(key), list):
        raise UpstreamServiceError(f"the answer has no {key}")
    context.usage = Usage.read(value.get("usage"))
    name = context.request.model
    if "model" not in value or value["model"] == name:
        return answer
    return chunks.renamed(answer, name)
