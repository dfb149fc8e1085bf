"""The chat service of one event loop: who asks for what, the answer, and the record of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import structlog

from gateway.authentication import Miss, authenticate, authenticate_cached
from gateway.chat.capabilities import require
from gateway.chat.context import CLIENT_GONE, ChatContext
from gateway.chat.errors import (
    BEFORE_FIRST_CHUNK,
    INTERNAL,
    SYNCHRONOUS,
    ChatError,
    EndpointNotFoundError,
    Table,
    look_up,
)
from gateway.chat.fallback import FallbackCaller
from gateway.chat.formats import CONTRACT, OPENAI, ApiFormat
from gateway.chat.http_messages import (
    EVENT_STREAM,
    ChatRequest,
    ChatResponse,
    ClientGoneError,
)
from gateway.chat.metering.limits import Limits
from gateway.chat.model_request import ModelRequest
from gateway.chat.streaming.body import events
from gateway.chat.streaming.transform import ChunkTransformer
from gateway.configuration.shapes import Allow, ModelEntry
from gateway.errors import (
    HANDLER,
    GatewayError,
    InternalError,
    MethodNotAllowedError,
    UnavailableError,
    UnsupportedMediaTypeError,
)
from gateway.identity import Caller
from webhooks_core.api.parsers import EncodedBody, is_encoded

# How long a key is looked up before the database counts as away.
LOOK_UP_S = 10.0

log = structlog.stdlib.get_logger(__name__)

Serve = Callable[[ChatContext], Awaitable[ChatResponse]]


class Catalogue(Protocol):
    """Which endpoints there are."""

    async def endpoints(self) -> Mapping[str, ModelEntry]:
        """Return all by name."""


class Recorder(Protocol):
    """Keeps what happened; never waits, never fails."""

    def record(self, exchange: ChatContext) -> None:
        """Take an exchange that has ended."""

    def deny(
        self, *, caller: Caller, action: str, model: str, incoming: ChatRequest
    ) -> None:
        """Take a request that was denied; `action` is the operation that was asked for."""


@dataclass(frozen=True, slots=True)
class Service:
    """Answers requests. `in_thread` runs what may touch the database."""

    calls: FallbackCaller
    catalogue: Catalogue
    recorder: Recorder
    limits: Limits
    in_thread: Callable[[Callable[[], Any]], Awaitable[Any]]

    async def answer(self, incoming: ChatRequest) -> ChatResponse:
        """Answer one request. Raises nothing but ClientGoneError and a cancellation."""
        address = address_of(incoming.path)
        try:
            address.check(incoming)
            caller = await self._caller(incoming)
            await self.limits.admit(caller)
            return await address.handle(self, incoming, caller, address.dialect)
        except ClientGoneError:
            raise
        except ChatError as error:
            # Its endpoint is not known: what is wrong is the request itself.
            status, detail = look_up(SYNCHRONOUS, error, incoming.request_id)
            return ChatResponse.json(status, address.dialect.error(status, detail))
        except Exception as error:  # noqa: BLE001 - every client gets an answer
            told = _told(error, incoming.request_id)
            body = address.dialect.error(told.status_code, told.detail)
            return ChatResponse.json(told.status_code, body, told.headers)

    async def _caller(self, incoming: ChatRequest) -> Caller:
        identity = incoming.identity
        caller = authenticate_cached(**identity)
        if not isinstance(caller, Miss):
            return caller
        async with asyncio.timeout(LOOK_UP_S):
            found: Caller = await self.in_thread(partial(authenticate, **identity))
        return found

    async def chat(
        self, incoming: ChatRequest, caller: Caller, dialect: ApiFormat
    ) -> ChatResponse:
        exchange = await self._exchange(
            incoming, caller, dialect, action="chat.completions"
        )
        if exchange.request.stream:
            return await self._run(exchange, "chat", BEFORE_FIRST_CHUNK, self._stream)
        return await self._run(exchange, "chat", SYNCHRONOUS, self._complete)

    async def embeddings(
        self, incoming: ChatRequest, caller: Caller, dialect: ApiFormat
    ) -> ChatResponse:
        exchange = await self._exchange(incoming, caller, dialect, action="embeddings")
        return await self._run(exchange, "embedding", SYNCHRONOUS, self._embed)

    async def models(
        self, _: ChatRequest, caller: Caller, __: ApiFormat
    ) -> ChatResponse:
        """List what the caller may use, and tell nothing of the rest."""
        items = [
            _described(it)
            for it in (await self.catalogue.endpoints()).values()
            if it.allow.admits(tenant=caller.tenant, principal=caller.principal)
        ]
        return ChatResponse.json(200, {"object": "list", "data": items})

    async def model(
        self, incoming: ChatRequest, caller: Caller, _: ApiFormat
    ) -> ChatResponse:
        """Describe one of them. Raises EndpointNotFoundError."""
        name = incoming.path.removeprefix(MODEL_PREFIX)
        return ChatResponse.json(200, _described(await self._endpoint(name, caller)))

    async def _endpoint(self, name: str, caller: Caller) -> ModelEntry:
        """Return an endpoint that the caller may use.

        Absent and forbidden take the same way, and so the same time. Raises
        EndpointNotFoundError.
        """
        endpoint = (await self.catalogue.endpoints()).get(name)
        is_admitted = (endpoint or NOBODYS).allow.admits(
            tenant=caller.tenant, principal=caller.principal
        )
        if endpoint is None or not is_admitted:
            raise EndpointNotFoundError
        return endpoint

    async def _exchange(
        self, incoming: ChatRequest, caller: Caller, dialect: ApiFormat, *, action: str
    ) -> ChatContext:
        """Return the request and its endpoint.

        Raises EndpointNotFoundError, InvalidRequestError, InvalidValueError.
        """
        if not incoming.is_json:
            raise UnsupportedMediaTypeError
        if is_encoded(incoming.headers.get("content-encoding")):
            raise UnsupportedMediaTypeError(
                EncodedBody.default_detail, headers=EncodedBody.headers
            )
        request = ModelRequest.parse(await incoming.read())
        try:
            endpoint = await self._endpoint(request.model, caller)
        except EndpointNotFoundError:
            self.recorder.deny(
                caller=caller, action=action, model=request.model, incoming=incoming
            )
            raise
        return ChatContext(caller, endpoint, request, incoming.request_id, dialect)

    async def _run(
        self, exchange: ChatContext, inference_type: str, table: Table, serve: Serve
    ) -> ChatResponse:
        """Serve an exchange; a failure becomes what the table says."""
        self.limits.enter(exchange.caller)
        try:
            require(exchange.endpoint, inference_type, exchange.request)
            return await serve(exchange)
        except asyncio.CancelledError:
            self._end(exchange, CLIENT_GONE)
            raise
        except Exception as error:
            if not isinstance(error, ChatError):
                log.exception("chat failed", request_id=exchange.request_id)
            status, body, headers = exchange.dialect.failure(
                table, error, exchange.request_id
            )
            self._end(exchange, status)
            return ChatResponse.json(status, body, headers)

    async def _complete(self, exchange: ChatContext) -> ChatResponse:
        answer = await self.calls.complete(exchange, lambda up: up.complete, "choices")
        self._end(exchange, 200)
        return ChatResponse.json(200, answer)

    async def _embed(self, exchange: ChatContext) -> ChatResponse:
        answer = await self.calls.complete(exchange, lambda up: up.embed, "data")
        self._end(exchange, 200)
        return ChatResponse.json(200, answer)

    async def _stream(self, exchange: ChatContext) -> ChatResponse:
        new_relay = partial(
            ChunkTransformer,
            exchange.dialect,
            model=exchange.request.model,
            wants_usage=exchange.request.wants_usage,
            choices=exchange.request.choices,
        )
        opened = await self.calls.open_stream(exchange, new_relay)
        exchange.forget_body()
        body = events(exchange, opened, self._end)
        # Begun, so that closing it ends the exchange even if nobody reads on.
        return ChatResponse(200, EVENT_STREAM, await anext(body), body)

    def _end(self, exchange: ChatContext, status: int) -> None:
        """Note how an exchange ended; only the first end counts."""
        if exchange.status:
            return
        exchange.status, exchange.duration_s = status, exchange.elapsed()
        self.limits.leave(exchange.caller)
        self.recorder.record(exchange)


def _told(error: Exception, request_id: str) -> GatewayError:
    """Return what the caller is told of a failure that is none of chat's own."""
    if isinstance(error, TimeoutError):
        log.error("database not answering", request_id=request_id)
        return UnavailableError()
    told = HANDLER.translate(error)
    if told is None:
        log.error("chat failed", request_id=request_id, exc_info=error)
        return InternalError(INTERNAL)
    return told


def _described(endpoint: ModelEntry) -> dict[str, Any]:
    """Return an endpoint as OpenAI describes a model."""
    name, upstream = endpoint.name, endpoint.upstream
    return {"id": name, "object": "model", "created": 0, "owned_by": upstream}


# Stands in for an endpoint that is not there.
NOBODYS = ModelEntry("", "", (), allow=Allow(everyone=False))

Handle = Callable[[Service, ChatRequest, Caller, ApiFormat], Awaitable[ChatResponse]]


@dataclass(frozen=True, slots=True)
class Address:
    """What is served at a path."""

    method: str
    dialect: ApiFormat
    handle: Handle

    @property
    def methods(self) -> tuple[str, ...]:
        return ("GET", "HEAD") if self.method == "GET" else (self.method,)

    def check(self, incoming: ChatRequest) -> None:
        if incoming.method not in self.methods:
            raise MethodNotAllowedError(headers={"Allow": ", ".join(self.methods)})


ADDRESSES: Mapping[str, Address] = {
    "/v2/chat/completions": Address("POST", CONTRACT, Service.chat),
    "/v1/chat/completions": Address("POST", OPENAI, Service.chat),
    "/v1/embeddings": Address("POST", OPENAI, Service.embeddings),
    "/v1/models": Address("GET", OPENAI, Service.models),
}
# What follows is the name of a model, which may hold anything.
MODEL_PREFIX = "/v1/models/"
MODEL = Address("GET", OPENAI, Service.model)


def address_of(path: str) -> Address:
    """Return what is served at a path of chat's."""
    return ADDRESSES.get(path, MODEL)
