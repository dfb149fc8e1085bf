"""Servers over HTTP: those with OpenAI's API, those with Anthropic's, and those with several."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from urllib.parse import quote

from gateway import json
from gateway.chat.apis.base import pause_header
from gateway.chat.errors import ChatError, UpstreamServiceError
from gateway.chat.failures import MAX_CHARACTERS, failure_in
from gateway.chat.sse import BlockReader, EventReader
from gateway.chat.upstreams.base import Call, Upstream
from gateway.chat.upstreams.echo import Echo
from gateway.chat.upstreams.servers import SERVERS
from gateway.configuration.shapes import ModelEntry, Target
from webhooks_core.network.client import Answer, HttpClient
from webhooks_core.network.connection import retry_after
from webhooks_core.network.deadlines import within
from webhooks_core.network.errors import NotHttpError, tls_reason

MAX_BODY_BYTES = 32 * 1024 * 1024
# FastAPI repeats the request in its errors.
MAX_ERROR_BYTES = 1024 * 1024
ERROR_BODY_S = 5.0
VERSION = "2023-06-01"
BETA = "beta=true"  # of the query
DEFAULT_BASE_URL = "https://api.openai.com/v1"
PASSED_ON = frozenset({"request-id", "x-should-retry"})
USER_AGENT = "Signpost"
OK = 200
NUMBER = re.compile(r"[0-9]{1,10}(\.[0-9]+)?")
# What is raised of a server that cannot be reached, or does not speak HTTP.
FAULTS = (TimeoutError, OSError, NotHttpError, ValueError)


def client() -> HttpClient:
    """Return the client of a running event loop."""
    # Some servers compress in spite of `identity`.
    return HttpClient({"User-Agent": USER_AGENT, "Accept-Encoding": "identity"})


def connect(client: HttpClient) -> Mapping[str, Upstream]:
    """Return an upstream of each kind, which calls through this client."""
    server = Server(client)
    return {"openai": server, "anthropic": server, "echo": Echo()}


class Server:
    """Posts requests, and reads answers."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    def apis(self, entry: ModelEntry) -> frozenset[str]:
        return entry.speaks

    async def post(self, call: Call) -> bytes:
        answer, body = await self._post(call), bytearray()
        try:
            while part := await answer.read():
                body += part
                if len(body) > MAX_BODY_BYTES:
                    raise UpstreamServiceError("the answer is too large")
        except FAULTS as error:
            raise UpstreamServiceError(describe(error)) from error
        finally:
            answer.close()
        return bytes(body)

    async def stream(self, call: Call) -> AsyncGenerator[list[bytes]]:
        """Yield events; an end before theirs closes the connection, so that the server can stop."""
        answer = await self._post(call)
        # Clients of the other APIs get whole events as they are, with their names.
        is_whole = call.is_native and call.api != "chat"
        reader = BlockReader() if is_whole else EventReader()
        del call  # its body may be large, and the stream may last
        try:
            while data := await answer.read():
                yield reader.feed(data)
        except FAULTS as error:
            raise UpstreamServiceError(describe(error)) from error
        finally:
            answer.close()

    async def _post(self, call: Call) -> Answer:
        """Return the answer, which the caller reads and closes, if it is a success.

        A client that speaks Anthropic's API as its server does gets the server's errors as they
        are, and some of its headers. Raises as Upstream's methods do.
        """
        context, entry = call.context, call.context.endpoint
        is_kept = call.is_native and call.api == "messages"
        try:
            answer = await self._client.post(
                *_head(call),
                call.body,
                connect_s=entry.timeouts.connect_s,
                through=entry.proxy,
            )
        except FAULTS as error:
            raise UpstreamServiceError(describe(error)) from error
        if answer.status != OK:
            try:
                raise await _failure(answer, is_kept=is_kept)
            finally:
                answer.close()
        if is_kept:
            context.response_headers = passed_on(answer.headers)
        return answer


def _head(call: Call) -> tuple[str, Mapping[str, str]]:
    """Return the URL of a call, and its headers."""
    context, entry = call.context, call.context.endpoint
    kind = "anthropic" if entry.upstream == "anthropic" else entry.server
    url, headers = _place(kind, context.target, entry.api_version, call.path)
    if call.api == "messages":
        passed = context.passed_headers if call.is_native else {}
        headers = {"anthropic-version": VERSION, **passed, **headers}
        if call.is_native and BETA in context.passed_query.split("&"):
            url += f"?{BETA}"
    headers = {
        "Content-Type": "application/json",
        "X-Request-Id": context.request_id,
        **headers,
    }
    if extra := entry.extra_headers:
        names = {name.lower() for name in extra}
        headers = {n: v for n, v in headers.items() if n.lower() not in names} | extra
    return url, headers


@lru_cache(maxsize=1024)
def _place(
    kind: str, target: Target, version: str, path: str
) -> tuple[str, Mapping[str, str]]:
    """Return the URL of a call, and the header with the key."""
    base, key = target.base_url.rstrip("/"), target.api_key.strip()
    if kind == "anthropic":
        url = f"{base.removesuffix('/v1')}/v1/{path}"
        return url, {"x-api-key": key} if key else {}
    server = SERVERS[kind]
    place = server.path.format(path=path, model=quote(target.model, safe=""))
    version = version or server.api_version
    query = f"?api-version={version}" if version else ""
    headers = {server.key_header: server.key.format(key=key)} if key else {}
    return f"{base or DEFAULT_BASE_URL}/{place}{query}", headers


async def _failure(response: Answer, *, is_kept: bool) -> ChatError:
    """Return the failure that a response other than 200 stands for."""
    body = b""
    with suppress(*FAULTS), within(ERROR_BODY_S):
        read = bytearray()
        while len(read) < MAX_ERROR_BYTES and (part := await response.read()):
            read += part
        body = bytes(read)  # of one that is cut off nothing
    try:
        value = json.loads(body)
    except ValueError:
        value = body[:MAX_CHARACTERS].decode(errors="replace")
    failure = failure_in(value, status=response.status)
    pause = pause_of(response.headers)
    failure.upstream = replace(failure.upstream, retry_after=pause)
    if is_kept and isinstance(value, dict):  # else it is a page of a proxy, perhaps
        kept = response.status, body, passed_on(response.headers)
        failure.upstream = replace(failure.upstream, response=kept)
    return failure


def passed_on(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a response that clients of its own API read.

    Not those that name the operator's account.
    """
    passed = {
        name: value
        for name, value in headers.items()
        if name in PASSED_ON
        or (name.startswith("anthropic-") and not name.endswith("-id"))
    }
    return passed | pause_header(pause_of(headers))


def pause_of(headers: Mapping[str, str]) -> float | None:
    """Return the pause in seconds that a server asks for, if it does.

    Vendors use seconds, with a fraction too, dates, and milliseconds.
    """
    for name, units in (("retry-after-ms", 1000), ("retry-after", 1)):
        if NUMBER.fullmatch(text := headers.get(name, "")):
            return float(text) / units
    seconds, is_valid = retry_after(text)
    return seconds if is_valid else None


def describe(error: BaseException) -> str:
    """Describe a failure for the log, without the URL, which may contain a secret."""
    text = str(error) if isinstance(error, NotHttpError) else ""
    return f"{type(error).__name__} ({tls_reason(error) or text})"[:200]
