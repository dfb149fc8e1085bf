"""POST /mcp under ASGI: who may send a message, and what a message may be; the SDK answers it."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
import structlog
from django.conf import settings
from django.contrib.auth.models import AbstractUser

from recording import authentication, errors, token_memory
from recording.cors import CORS_HEADERS
from recording.throttles import AccountThrottle
from webhooks_core.errors import (
    ApiError,
    BadRequestError,
    InternalError,
    PayloadTooLargeError,
)
from webhooks_core.web.parsers import (
    MAX_BODY_BYTES,
    EncodedBodyError,
    is_encoded,
)
from webhooks_core.web.thread_pool import InThread

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

Header = tuple[bytes, bytes]

RECEIVE_S = 60.0  # for a whole body
QUICK_S = 0.1
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)
HEADERS = {**CORS_HEADERS, "Cache-Control": "no-store"}
# Not for the SDK: the token stays here, and of JSON this server has one kind.
NOT_PASSED_ON = {b"authorization", b"accept", b"content-type", b"content-length"}
PASSED_ON = (
    (b"accept", b"application/json, text/event-stream"),
    (b"content-type", b"application/json"),
)

log = structlog.stdlib.get_logger("signpost.http")


class ClientGoneError(Exception):
    """The client disconnected."""


def _sdk() -> Callable[..., Awaitable[None]]:
    """Return what answers messages. Imported for the first: it takes 25 MB and a second."""
    from recording.mcp.server import answer

    return answer


class MCPApplication:
    """Answers messages; `in_thread` runs what uses the database."""

    def __init__(self, in_thread: InThread) -> None:
        self._in_thread = in_thread
        # One message at a time: of many, each would have a part in every round of the loop, for
        # which chat waits.
        self._turns = asyncio.Semaphore(1)
        self._respond: Callable[..., Awaitable[None]] | None = None

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send, more: Iterable[Header] = ()
    ) -> None:
        """Answer one POST; `more` are headers of the response."""
        exchange = _Exchange(scope, receive, send, more)
        try:
            await self._answer(exchange)
        except ApiError as error:
            await exchange.refuse(error)
        except ClientGoneError:
            pass
        except Exception as error:
            log.exception("mcp request failed", request_id=exchange.id)
            await exchange.refuse(errors.HANDLER.translate(error) or InternalError())
        finally:
            exchange.log()

    async def _answer(self, exchange: _Exchange) -> None:
        token = exchange.token()
        account = token_memory.recall(token)
        if account is None or settings.RECORDING_RATES["mcp"]:
            account = await self._in_thread(partial(_admitted, token))
        method, body = await exchange.message()
        # Not while a receiver is asked, for some seconds.
        has_turn = method != "events/subscribe"
        in_thread = self._aside if has_turn else self._in_thread
        async with self._turns if has_turn else nullcontext():
            if self._respond is None:
                self._respond = await self._in_thread(_sdk)
            passed_on = exchange.passed_on(body)
            await self._respond(account, token, in_thread, *passed_on)
        await exchange.finish()

    async def _aside(self, function: Callable[[], Any]) -> Any:
        """Run a function in a thread; while one takes long, other messages have their turns."""
        work = asyncio.ensure_future(self._in_thread(function))
        await asyncio.wait({work}, timeout=QUICK_S)
        if not work.done():
            self._turns.release()
            try:
                await asyncio.wait({work})
            finally:
                await asyncio.shield(self._turns.acquire())
        return await work


def _admitted(token: str) -> AbstractUser:
    """Return the account of a token. Raises UnauthorizedError, TooManyRequestsError."""
    account = authentication.owner_of(token)
    if account is None:
        raise authentication.refused("/mcp")
    AccountThrottle("mcp").count(account)
    return account


class _Exchange:
    """One request and its response."""

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, more: Iterable[Header]
    ) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        given = self._header(b"x-request-id")
        is_valid = REQUEST_ID.fullmatch(given)
        self.id = given if is_valid else f"{random.getrandbits(128):032x}"
        self._added = [*more, (b"x-request-id", self.id.encode())]
        self._added += [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
        self._kept: list[Message] = []
        self._started, self._status = time.perf_counter(), 0

    def _header(self, wanted: bytes) -> str:
        """Return a header; one that was sent twice is joined, and so is no valid one."""
        values = [value for name, value in self._scope["headers"] if name == wanted]
        return b",".join(values).decode("latin-1")

    def token(self) -> str:
        """Return the bearer token. Raises UnauthorizedError."""
        header = self._header(b"authorization").encode("latin-1")
        match = authentication.CREDENTIALS.fullmatch(header)
        if match is None:
            raise authentication.missing("/mcp")
        return match[1].decode()

    async def message(self) -> tuple[object, bytes]:
        """Return method and body as the SDK may read it; raises as the API does for its bodies."""
        if is_encoded(self._header(b"content-encoding")):
            raise EncodedBodyError
        media_type = self._header(b"content-type").partition(";")[0].strip().lower()
        if media_type != "application/json":
            raise errors.UnsupportedMediaTypeError
        try:
            async with asyncio.timeout(RECEIVE_S):
                return _normalized(await self._read())
        except TimeoutError as error:
            raise BadRequestError(
                "The body took too long to arrive.", headers={"Connection": "close"}
            ) from error

    async def _read(self) -> bytes:
        parts = bytearray()
        while (message := await self._receive())["type"] == "http.request":
            parts += message.get("body", b"")
            if len(parts) > MAX_BODY_BYTES:
                raise PayloadTooLargeError(f"The body is over {MAX_BODY_BYTES} bytes.")
            if not message.get("more_body"):
                return bytes(parts)
        raise ClientGoneError

    def passed_on(self, body: bytes) -> tuple[Scope, Receive, Send]:
        """Return what the SDK gets: `body`, without the token."""
        kept = (each for each in self._scope["headers"] if each[0] not in NOT_PASSED_ON)
        messages: list[Message] = [{"type": "http.request", "body": body}]

        async def receive() -> Message:
            return messages.pop() if messages else await self._receive()

        return {**self._scope, "headers": [*kept, *PASSED_ON]}, receive, self._keep

    async def _keep(self, message: Message) -> None:
        """Keep a part of the response: who reads slowly does not hold up others."""
        self._kept.append(message)

    async def finish(self) -> None:
        """Send what was kept."""
        for message in self._kept:
            await self.send(message)

    async def send(self, message: Message) -> None:
        """Send a part of the response with the headers that all have."""
        if message["type"] == "http.response.start":
            self._status = int(message["status"])
            own = {name for name, _ in self._added}
            kept = [each for each in message["headers"] if each[0].lower() not in own]
            message = {**message, "headers": [*kept, *self._added]}
        try:
            await self._send(message)
        except (OSError, RuntimeError) as error:  # uvloop: the connection is closed
            raise ClientGoneError from error

    async def refuse(self, error: ApiError) -> None:
        """Send an error in the API's shape, if nothing has been sent."""
        if self._status:
            return
        headers: Mapping[str, Any] = {
            **error.headers,
            "Content-Type": "application/json",
        }
        encoded = [(k.lower().encode(), str(v).encode()) for k, v in headers.items()]
        start = {"type": "http.response.start", "status": error.status_code}
        await self.send(start | {"headers": encoded})
        body = orjson.dumps(errors.HANDLER.body(error))
        await self.send({"type": "http.response.body", "body": body})

    def log(self) -> None:
        ms = round((time.perf_counter() - self._started) * 1000, 1)
        values = {"request_id": self.id, "method": "POST", "path": "/mcp", "ms": ms}
        log.info("request", status=self._status or 499, **values)


def _normalized(body: bytes) -> tuple[object, bytes]:
    """Return method and text of a message: the SDK reads no JSON that the API would refuse."""
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequestError(
            f"The body is not JSON: {error.msg} "
            f"(line {error.lineno}, column {error.colno})."
        ) from error
    if not isinstance(message, dict):
        raise BadRequestError("The body must be a JSON object.")
    if "id" not in message:
        message.pop("params", None)  # without effect; the SDK would log some as crashes
    elif type(message["id"]) not in {int, str}:
        # The SDK would take it for a notification, and nothing would answer.
        raise BadRequestError("id must be a string or an integer of at most 64 bits.")
    try:
        return message.get("method"), orjson.dumps(message)
    except TypeError as error:
        raise BadRequestError("The body is nested too deeply.") from error
