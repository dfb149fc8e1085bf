"""The chat service of one event loop: from a request to its response and its record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial

import structlog

from gateway.authentication import authenticate, authenticate_cached, require_scope
from gateway.chat.apis.base import Format
from gateway.chat.calls import complete, open_stream
from gateway.chat.capabilities import require
from gateway.chat.context import ABSENT, CLIENT_GONE, SUCCESS, ChatContext
from gateway.chat.errors import (
    AFTER_FIRST_CHUNK,
    BEFORE_FIRST_CHUNK,
    INTERNAL,
    SYNCHRONOUS,
    ChatError,
    EndpointNotFoundError,
    UpstreamServiceError,
    look_up,
)
from gateway.chat.http_messages import (
    EVENT_STREAM,
    ChatRequest,
    ChatResponse,
    ClientGoneError,
)
from gateway.chat.metering.background_writer import UsageWriter
from gateway.chat.metering.budgets import Budgets
from gateway.chat.metering.limits import Limits
from gateway.chat.model_registry import ModelRegistry
from gateway.chat.policy_hook import Policy
from gateway.chat.request import ModelRequest
from gateway.chat.request_log.entry import LogEntry
from gateway.chat.routes import MODEL_PREFIX, route_of
from gateway.chat.streams import Stream
from gateway.chat.targets import Targets
from gateway.configuration.shapes import ModelEntry, RequestLogSettings
from gateway.errors import HANDLER, UnsupportedMediaTypeError
from gateway.identity import CHAT as CHAT_SCOPE
from gateway.identity import Caller
from gateway.keys import MISS
from webhooks_core.errors import InternalError, TooManyRequestsError, UnavailableError
from webhooks_core.web.parsers import EncodedBodyError, is_encoded
from webhooks_core.web.thread_pool import InThread

# How long a key is looked up before the database counts as unavailable.
LOOK_UP_S = 10.0
# A larger body is read in a thread: JSON of 20 MB takes a third of a second.
LARGE = 512 * 1024

log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Service:
    """Answers requests. `in_thread` runs what may use the database."""

    targets: Targets
    registry: ModelRegistry
    recorder: UsageWriter
    limits: Limits
    budgets: Budgets
    in_thread: InThread
    request_log: RequestLogSettings = field(default_factory=RequestLogSettings)
    policy: Policy | None = None

    async def answer(
        self, request: ChatRequest, caller: Caller | None = None
    ) -> ChatResponse:
        """Serve a request; without a caller, check its method and authenticate it first.

        Raises nothing but ClientGoneError and a cancellation.
        """
        route = route_of(request.path)
        api_format = route.format_for(request.headers)
        try:
            if caller is None:
                route.check_method(request.method)
                known = authenticate_cached(request.headers, request.peer)
                caller = await self._look_up(request) if known is MISS else known
            require_scope(caller, CHAT_SCOPE)
            if route.operation is None:
                return await self._models(request, caller, api_format)
            wanted = await self._read(request)
        except ClientGoneError:
            raise
        except Exception as error:  # every client gets a response
            return failure_response(error, request.request_id, api_format)
        operation = route.operation
        context = ChatContext.of(request, caller, wanted, operation, api_format)
        return await self._serve(context)

    async def _look_up(self, request: ChatRequest) -> Caller:
        look_up_key = partial(authenticate, request.headers, request.peer)
        try:
            async with asyncio.timeout(LOOK_UP_S):
                known: Caller = await self.in_thread(look_up_key)
        except TimeoutError as error:
            raise UnavailableError from error
        return known

    async def _models(
        self, request: ChatRequest, caller: Caller, api_format: Format
    ) -> ChatResponse:
        """Describe the endpoints that the caller may use, or one.

        Raises EndpointNotFoundError.
        """
        known = await self.registry.endpoints()
        if request.path.startswith(MODEL_PREFIX):
            name = request.path.removeprefix(MODEL_PREFIX)
            endpoint = _allowed(known.get(name, ABSENT), caller)
            return ChatResponse.json(200, api_format.model(endpoint))
        endpoints = [item for item in known.values() if _is_allowed(item, caller)]
        return ChatResponse.json(200, api_format.models(endpoints))

    async def _read(self, request: ChatRequest) -> ModelRequest:
        """Return the body as a request; a large one is read in a thread, beside other requests.

        Raises UnsupportedMediaTypeError, EncodedBodyError, InvalidRequestError, InvalidValueError,
        what `request.read` raises.
        """
        if not request.is_json:
            raise UnsupportedMediaTypeError
        if is_encoded(request.headers.get("content-encoding")):
            raise EncodedBodyError
        raw = await request.read()
        if len(raw) < LARGE:
            return ModelRequest.parse(raw)
        wanted: ModelRequest = await self.in_thread(partial(ModelRequest.parse, raw))
        return wanted

    async def _serve(self, context: ChatContext) -> ChatResponse:
        """Call the endpoint; a failure becomes what its table says."""
        is_stream = context.request.stream and context.operation.can_stream
        try:
            await self._admit(context)
            if is_stream:
                return await self._stream(context)
            completion = await self.targets.call(context, complete)
            self._end(context, SUCCESS)
            return ChatResponse.json(SUCCESS, completion, context.response_headers)
        except asyncio.CancelledError:
            self._end(context, CLIENT_GONE)
            raise
        except Exception as error:
            return self._fail(context, error, is_stream=is_stream)

    async def _admit(self, context: ChatContext) -> None:
        """Find the endpoint and its fallbacks, and hold what the request may use.

        Raises EndpointNotFoundError, TooManyRequestsError, UnsupportedRequestError,
        UnsupportedInferenceTypeError, PolicyDenied.
        """
        caller, name = context.caller, context.request.model
        known = await self.registry.endpoints()
        context.endpoint = _allowed(known.get(name, ABSENT), caller)
        context.fallbacks = tuple(
            known[name]
            for name in context.endpoint.fallbacks
            if name in known and _is_allowed(known[name], caller)
        )
        self.limits.enter(context)
        if context.operation.is_budgeted:
            await self.budgets.reserve(context)
        context.log = self._log_of(context)
        require(context.endpoint, context.operation, context.request)
        if self.policy is not None:
            context.request = await self.policy(caller, context.request)
            context.prompt_characters = 0  # it may be another one

    def _fail(
        self, context: ChatContext, error: Exception, *, is_stream: bool
    ) -> ChatResponse:
        """End a request that failed before its response began."""
        if isinstance(error, ChatError) and error.denial:
            self.recorder.deny(context, error.denial)
        elif isinstance(error, TooManyRequestsError):
            context.endpoint = ABSENT  # it was not called, so that it counts in no sum
        shown, request_id = _logged(error, context.request_id), context.request_id
        table = BEFORE_FIRST_CHUNK if is_stream else SYNCHRONOUS
        status, body, headers = context.operation.failure(context, table, shown)
        context.failure = str(look_up(table, shown, request_id)[1])
        self._end(context, status)
        return ChatResponse.json(status, body, headers)

    def _log_of(self, context: ChatContext) -> LogEntry | None:
        """Return what keeps the prompt and the answer, if they are to be logged."""
        model, tenant = context.endpoint.name, context.caller.tenant
        if not self.request_log.wants(model=model, tenant=tenant):
            return None
        most = self.request_log.max_characters
        return LogEntry.begin(context, max_characters=most)

    async def _stream(self, context: ChatContext) -> ChatResponse:
        stream = await self.targets.call(context, open_stream)
        parts = self._events(context, stream)
        context.forget_body()
        # The generator has begun, so that closing it ends the request.
        return ChatResponse(
            SUCCESS,
            {**EVENT_STREAM, **context.response_headers},
            await anext(parts),
            parts,
            context.api_format.keep_alive,
        )

    async def _events(
        self, context: ChatContext, stream: Stream
    ) -> AsyncGenerator[bytes]:
        """Yield the framed events of a stream; those that arrive together stay together.

        In every case this closes the upstream's call, and ends the request, first with the
        status that counts.
        """
        try:
            async with aclosing(stream.events):
                try:
                    async for data in stream.parts():
                        yield data
                except Exception as error:  # the client gets a last event
                    yield _failed(context, stream, error)
                # The client has everything, and may leave now.
                self._end(context, SUCCESS)
                if stream.reader.is_done:
                    await stream.read_to_end()
        finally:
            self._end(context, CLIENT_GONE)

    def _end(self, context: ChatContext, status: int) -> None:
        """Record how a request ended; only the first end counts."""
        if context.status:
            return
        context.end(status)
        self.limits.leave(context)
        self.budgets.settle(context)
        self.recorder.record(context)


def failure_response(
    error: Exception, request_id: str, api_format: Format
) -> ChatResponse:
    """Return the response to a request that failed before anything was known of it."""
    shown = _logged(error, request_id)
    return ChatResponse.json(*api_format.failure(SYNCHRONOUS, shown, request_id))


def _logged(error: Exception, request_id: str) -> Exception:
    """Return the error that the client sees; an unexpected one is logged."""
    known = error if isinstance(error, ChatError) else HANDLER.translate(error)
    if known is None:
        log.error("chat failed", request_id=request_id, exc_info=error)
        return InternalError(INTERNAL)
    return known


def _allowed(endpoint: ModelEntry, caller: Caller) -> ModelEntry:
    """Return an endpoint that the caller may use.

    An absent and a forbidden one take the same path, and so the same time. Raises
    EndpointNotFoundError.
    """
    if not _is_allowed(endpoint, caller):
        raise EndpointNotFoundError
    return endpoint


def _is_allowed(endpoint: ModelEntry, caller: Caller) -> bool:
    """Return True if a caller may call an endpoint, and the one who created its key may, too."""
    rights, tenant, allow = caller.rights, caller.tenant, endpoint.allow
    if rights.models is not None and endpoint.name not in rights.models:
        return False
    if not allow.admits(tenant=tenant, principal=caller.principal):
        return False
    creator = rights.created_by or caller.principal
    return allow.admits(tenant=tenant, principal=creator)


def _failed(context: ChatContext, stream: Stream, error: Exception) -> bytes:
    if isinstance(error, TimeoutError):
        error = UpstreamServiceError("the upstream sent nothing in time")
    request_id = context.request_id
    context.error_status, context.failure = look_up(
        AFTER_FIRST_CHUNK, error, request_id
    )
    if isinstance(error, ChatError):
        log.warning(
            "stream failed",
            request_id=request_id,
            model=context.endpoint.name,
            reason=str(error)[:200],
        )
    else:
        log.error("stream failed", request_id=request_id, exc_info=error)
    return stream.failed(error)
