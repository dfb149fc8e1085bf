"""HTTP calls of upstreams: one pooled client per event loop, limits, and errors."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Mapping
from dataclasses import replace

from gateway import json
from gateway.chat.apis.base import pause_header
from gateway.chat.errors import ChatError, UpstreamServiceError
from gateway.chat.failures import MAX_CHARACTERS, failure_in
from gateway.chat.sse import BYTE_ORDER_MARK, EventReader
from gateway.chat.upstreams.base import Call
from webhooks_core.network.client import Answer, HttpClient
from webhooks_core.network.deadlines import within
from webhooks_core.network.errors import NotHttpError, tls_reason
from webhooks_core.network.heads import retry_after

MAX_BODY_BYTES = 32 * 1024 * 1024
# FastAPI repeats the request in its errors.
MAX_ERROR_BYTES = 1024 * 1024
ERROR_BODY_S = 5.0
PASSED_ON = frozenset({"request-id", "x-should-retry"})
USER_AGENT = "Signpost"
OK = 200
MILLISECONDS = re.compile(r"[0-9]{1,10}(\.[0-9]+)?")
FRACTION = re.compile(r"[0-9]{1,7}\.[0-9]+")


def client() -> HttpClient:
    """Return the client of a running event loop."""
    # Some servers compress in spite of `identity`.
    return HttpClient({"User-Agent": USER_AGENT, "Accept-Encoding": "identity"})


# What is raised of a server that cannot be reached, or does not speak HTTP.
FAULTS = (TimeoutError, OSError, NotHttpError, ValueError)


async def post(
    client: HttpClient,
    call: Call,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    keeps_errors: bool,
) -> Answer:
    """POST JSON; return the answer, which the caller reads, if it is a success.

    `keeps_errors`: the client speaks the server's API. It gets the server's errors as they are,
    and some of its headers. Raises as Upstream's methods do.
    """
    try:
        answer = await client.post(
            url,
            _with_usual(headers, call),
            body,
            connect_s=call.entry.timeouts.connect_s,
            through=call.entry.proxy,
        )
    except FAULTS as error:
        raise UpstreamServiceError(describe(error)) from error
    if answer.status != OK:
        try:
            raise await _failure(answer, is_kept=keeps_errors)
        finally:
            answer.close()
    if keeps_errors:
        call.context.response_headers = passed_on(answer.headers)
    return answer


def _with_usual(headers: Mapping[str, str], call: Call) -> Mapping[str, str]:
    """Return the headers of a call with those that all have, and those of its entry."""
    headers = {
        "Content-Type": "application/json",
        "X-Request-Id": call.context.request_id,
        **headers,
    }
    if extra := call.entry.extra_headers:
        names = {name.lower() for name in extra}
        headers = {n: v for n, v in headers.items() if n.lower() not in names} | extra
    return headers


async def _failure(response: Answer, *, is_kept: bool) -> ChatError:
    """Return the failure that a response other than 200 stands for."""
    try:
        with within(ERROR_BODY_S):
            body = await _read(response, MAX_ERROR_BYTES)
    except FAULTS:
        body = b""
    try:
        value = json.loads(body.removeprefix(BYTE_ORDER_MARK))
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
    milliseconds = headers.get("retry-after-ms", "")
    text = headers.get("retry-after", "")
    if MILLISECONDS.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    if FRACTION.fullmatch(text):
        return float(text)
    seconds, is_valid = retry_after(text)
    return seconds if is_valid else None


async def _read(response: Answer, limit: int) -> bytes:
    """Return the beginning of a body."""
    body = bytearray()
    while len(body) < limit and (part := await response.read()):
        body += part
    return bytes(body[:limit])


async def read_body(response: Answer) -> bytes:
    """Return the body of a response, and close it. Raises UpstreamServiceError."""
    body = bytearray()
    try:
        while part := await response.read():
            body += part
            if len(body) > MAX_BODY_BYTES:
                raise UpstreamServiceError("the answer is too large")
    except FAULTS as error:
        raise UpstreamServiceError(describe(error)) from error
    finally:
        response.close()
    return bytes(body.removeprefix(BYTE_ORDER_MARK))


async def events(
    posted: Awaitable[Answer], kind: type[EventReader]
) -> AsyncGenerator[list[bytes]]:
    """Yield the data of a stream's events, those together that arrived together.

    Closing the generator before the end closes the connection, so that the server can stop
    immediately. Raises UpstreamServiceError.
    """
    response, reader = await posted, kind()
    try:
        while data := await response.read():
            yield reader.feed(data)
    except FAULTS as error:
        raise UpstreamServiceError(describe(error)) from error
    finally:
        response.close()


def describe(error: BaseException) -> str:
    """Describe a failure for the log, without the URL, which may contain a secret."""
    text = str(error) if isinstance(error, NotHttpError) else ""
    return f"{type(error).__name__} ({tls_reason(error) or text})"[:200]
