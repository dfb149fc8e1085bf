"""The chat service of one event loop: from a request to its response and its record."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial

import structlog

from gateway.authentication import authenticate, authenticate_cached, require_scope
from gateway.chat.context import CLIENT_GONE, SUCCESS, ChatContext
from gateway.chat.core.formats import ApiFormat
from gateway.chat.core.messages_format import MESSAGES
from gateway.chat.errors import (
    BEFORE_FIRST_CHUNK,
    SYNCHRONOUS,
    ChatError,
    EndpointNotFoundError,
    look_up,
)
from gateway.chat.fallback import FallbackCaller
from gateway.chat.http_messages import (
    EVENT_STREAM,
    ChatRequest,
    ChatResponse,
    ClientGoneError,
)
from gateway.chat.metering.budgets import Budgets
from gateway.chat.metering.limits import Limits
from gateway.chat.metering.writer import UsageWriter
from gateway.chat.model_lists import (
    anthropic_list,
    anthropic_model,
    openai_list,
    openai_model,
)
from gateway.chat.model_registry import ModelRegistry
from gateway.chat.operations.base import Operation
from gateway.chat.policy_hook import Policy, PolicyDenied
from gateway.chat.refusals import failure_response
from gateway.chat.request import ModelRequest
from gateway.chat.request_log.entry import LogEntry
from gateway.chat.routes import MODEL_PREFIX, route_of
from gateway.chat.streaming.body import events
from gateway.configuration.shapes import Allow, ModelEntry, RequestLogSettings
from gateway.errors import UnsupportedMediaTypeError
from gateway.identity import CHAT as CHAT_SCOPE
from gateway.identity import Caller
from gateway.keys import MISS
from gateway.names import is_name
from webhooks_core.web.parsers import EncodedBodyError, is_encoded
from webhooks_core.web.thread_pool import InThread

# How long a key is looked up before the database counts as unavailable.
LOOK_UP_S = 10.0
# What becomes of the headers by which Claude Code tells its requests apart.
DIMENSIONS = {
    "x-claude-code-session-id": "session",
    "x-claude-code-agent-id": "agent",
    "x-claude-code-parent-agent-id": "parent_agent",
}

log = structlog.stdlib.get_logger(__name__)


# In place of an endpoint that does not exist: it admits no caller.
ABSENT = ModelEntry("", "", (), allow=Allow(everyone=False))


@dataclass(frozen=True, slots=True)
class Service:
    """Answers requests. `in_thread` runs what may use the database."""

    calls: FallbackCaller
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
                caller = await self._authenticate(request)
            require_scope(caller, CHAT_SCOPE)
            if route.operation is None:
                return await self._models(request, caller, api_format)
            return await self._call(request, caller, api_format, route.operation)
        except ClientGoneError:
            raise
        except Exception as error:  # noqa: BLE001 - every client gets a response
            return failure_response(error, request.request_id, api_format)

    async def _authenticate(self, request: ChatRequest) -> Caller:
        caller = authenticate_cached(request.headers, request.peer)
        if caller is not MISS:
            return caller
        look_up_key = partial(authenticate, request.headers, request.peer)
        async with asyncio.timeout(LOOK_UP_S):
            known: Caller = await self.in_thread(look_up_key)
        return known

    async def _models(
        self, request: ChatRequest, caller: Caller, api_format: ApiFormat
    ) -> ChatResponse:
        """Describe the endpoints that the caller may use, or one.

        Raises EndpointNotFoundError.
        """
        is_anthropic = api_format is MESSAGES
        if request.path.startswith(MODEL_PREFIX):
            name = request.path.removeprefix(MODEL_PREFIX)
            endpoint = await self._endpoint(name, caller)
            describe = anthropic_model if is_anthropic else openai_model
            return ChatResponse.json(200, describe(endpoint))
        known = (await self.registry.endpoints()).values()
        endpoints = [item for item in known if _is_allowed(item, caller)]
        if is_anthropic:
            return ChatResponse.json(200, anthropic_list(endpoints))
        return ChatResponse.json(200, openai_list(endpoints))

    async def _endpoint(self, name: str, caller: Caller) -> ModelEntry:
        """Return an endpoint that the caller may use.

        An absent and a forbidden one take the same path, and so the same time. Raises
        EndpointNotFoundError.
        """
        endpoint = (await self.registry.endpoints()).get(name, ABSENT)
        if not _is_allowed(endpoint, caller):
            raise EndpointNotFoundError
        return endpoint

    async def _fallbacks(
        self, endpoint: ModelEntry, caller: Caller
    ) -> dict[str, ModelEntry]:
        """Return the fallbacks of an endpoint that the caller may use, by name."""
        known = await self.registry.endpoints()
        names = (*endpoint.fallbacks, *endpoint.context_fallbacks)
        return {
            name: known[name]
            for name in names
            if name in known and _is_allowed(known[name], caller)
        }

    async def _context(
        self,
        request: ChatRequest,
        caller: Caller,
        api_format: ApiFormat,
        operation: Operation,
    ) -> ChatContext:
        """Read the body and find the endpoint.

        Raises UnsupportedMediaTypeError, EncodedBodyError, what `request.read` raises,
        EndpointNotFoundError, InvalidRequestError, InvalidValueError.
        """
        if not request.is_json:
            raise UnsupportedMediaTypeError
        if is_encoded(request.headers.get("content-encoding")):
            raise EncodedBodyError
        raw = await request.read()
        model_request = ModelRequest.parse(raw, keeps_raw=operation.keeps_raw)
        try:
            endpoint = await self._endpoint(model_request.model, caller)
        except EndpointNotFoundError:
            self.recorder.deny(
                caller=caller,
                action=operation.action,
                model=model_request.model,
                request_id=request.request_id,
                traceparent=request.headers.get("traceparent"),
            )
            raise
        context = ChatContext(
            caller, endpoint, model_request, request.request_id, api_format
        )
        context.traceparent = request.headers.get("traceparent")
        for header, name in DIMENSIONS.items():
            value = request.headers.get(header)
            if value is not None and is_name(value):
                setattr(context, name, value)
        if endpoint.falls_back:
            context.fallbacks = await self._fallbacks(endpoint, caller)
        if prefix := operation.passed_headers:
            context.passed_query = request.query
            context.passed_headers = {
                name: value
                for name, value in request.headers.items()
                if name.startswith(prefix)
            }
        return context

    async def _call(
        self,
        request: ChatRequest,
        caller: Caller,
        api_format: ApiFormat,
        operation: Operation,
    ) -> ChatResponse:
        """Call the endpoint; a failure becomes what its table says. Raises as _context()."""
        context = await self._context(request, caller, api_format, operation)
        await self._begin_log(context, operation)
        return await self._answer(context, operation)

    async def _begin_log(self, context: ChatContext, operation: Operation) -> None:
        model, tenant = context.endpoint.name, context.caller.tenant
        if self.request_log.wants(model=model, tenant=tenant):
            context.log = await LogEntry.begin(
                context,
                operation.action,
                max_characters=self.request_log.max_characters,
            )

    async def _answer(self, context: ChatContext, operation: Operation) -> ChatResponse:
        is_stream = context.request.stream and operation.can_stream
        self.limits.enter(context.caller)
        try:
            if operation.is_budgeted:
                await self.budgets.reserve(context)
        except BaseException:
            self.limits.leave(context.caller)
            raise
        try:
            wanted = context.request
            await operation.check(context.endpoint, wanted)
            if self.policy is not None:
                context.request = await self.policy(context.caller, wanted)
            if is_stream:
                return await self._stream(context, operation)
            completion = await self.calls.complete(context, operation)
            if context.log is not None:
                context.log.answer.read(completion)
            self._end(context, SUCCESS)
            return ChatResponse.json(SUCCESS, completion, context.response_headers)
        except asyncio.CancelledError:
            self._end(context, CLIENT_GONE)
            raise
        except Exception as error:
            if isinstance(error, PolicyDenied):
                self._deny(context, operation, error.reason)
            elif not isinstance(error, ChatError):
                log.exception("chat failed", request_id=context.request_id)
            table = BEFORE_FIRST_CHUNK if is_stream else SYNCHRONOUS
            api_format, request_id = context.api_format, context.request_id
            status, body, headers = api_format.failure(table, error, request_id)
            context.failure = str(look_up(table, error, request_id)[1])
            self._end(context, status)
            return ChatResponse.json(status, body, headers)

    async def _stream(self, context: ChatContext, operation: Operation) -> ChatResponse:
        opened = await self.calls.open_stream(context, operation)
        parts = events(context, opened, self._end)
        context.forget_body()
        if context.log is not None:
            parts = context.log.watch(parts)
        # The generator has begun, so that closing it ends the request.
        return ChatResponse(
            SUCCESS,
            {**EVENT_STREAM, **context.response_headers},
            await anext(parts),
            parts,
            context.api_format.keep_alive,
        )

    def _end(self, context: ChatContext, status: int) -> None:
        """Record how a request ended; only the first end counts."""
        if context.status:
            return
        context.status, context.duration_s = status, context.elapsed()
        self.limits.leave(context.caller)
        completed = self.recorder.record(context)
        self.budgets.settle(context.reservation, completed)
        if context.log is not None:
            self.recorder.log(context.log.ended(completed, context.failure))

    def _deny(self, context: ChatContext, operation: Operation, reason: str) -> None:
        """Pass a denial of the operator's function on to the policy writer."""
        self.recorder.deny(
            caller=context.caller,
            action=operation.action,
            model=context.request.model,
            request_id=context.request_id,
            traceparent=context.traceparent,
            reason=reason,
        )


def _is_allowed(endpoint: ModelEntry, caller: Caller) -> bool:
    """Return True if a caller may call an endpoint, and the one who created its key may, too."""
    rights, tenant, allow = caller.rights, caller.tenant, endpoint.allow
    if rights.models is not None and endpoint.name not in rights.models:
        return False
    if not allow.admits(tenant=tenant, principal=caller.principal):
        return False
    creator = rights.created_by or caller.principal
    return allow.admits(tenant=tenant, principal=creator)
