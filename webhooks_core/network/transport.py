"""One attempt: the only module that POSTs to subscribers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from typing import NamedTuple

from webhooks_core.conf import webhook_settings
from webhooks_core.network.addresses import AllowedNetworks
from webhooks_core.network.connection import Connection
from webhooks_core.network.deadlines import Deadlines
from webhooks_core.network.errors import (
    NotHttpError,
    Outcome,
    classify,
    forget_frames,
    local_failure,
)
from webhooks_core.network.heads import head_of, retry_after, target_of
from webhooks_core.network.pool import Connections, Progress, Route
from webhooks_core.network.proxy import UNREACHABLE
from webhooks_core.secrets import SecretUnreadableError
from webhooks_core.signing.schemes import SecretFormError

# The status line decides. This bounds the reading of the rest, which mostly people look at.
READ_FOR_S = 1.0
CONNECT_FOR_S = 3.0
READ_AT_MOST = 16 * 1024
RESPONSE_BODY_BYTES = 4096  # of a response, kept for people
KEPT_HEADER_BYTES = 4096  # the same of its headers


class OutgoingRequest(NamedTuple):
    """One attempt to make. At most `limit` requests of a `queue` run at once.

    `sign` returns the headers for a unix time in seconds. Raises SecretUnreadableError, SecretFormError.
    `owner` is whose share of the slots it takes.
    """

    key: int
    queue: int
    limit: int
    url: str
    body: bytes
    sign: Callable[[int], Mapping[str, str]]
    timeout_s: float
    networks: AllowedNetworks
    owner: tuple[str, str] = ("", "")


class Timings(NamedTuple):
    """Milliseconds since the start of an attempt; None for what it did not reach or do.

    A kept connection is neither connected nor secured.
    """

    connected: int | None = None
    secured: int | None = None
    first_byte: int | None = None


class AttemptResult(NamedTuple):
    """How an attempt ended; an `outcome` of None means that it was released without being made.

    Then `error` names what it lacked here, such as a descriptor or the egress proxy; "" means that
    it did not start in time.
    `proves_network` is false for a time-out on a reused connection: a network that drops
    everything first shows in this way. `is_repeated` is true if a kept connection turned out to be
    closed, and the request was sent once more. From `request_head` on it tells what was sent to
    which address, and what headers came back, for people.
    """

    key: int
    queue: int
    started_at: datetime
    outcome: Outcome | None
    status_code: int | None = None
    error: str = ""
    retry_after: float | None = None
    body: bytes = b""
    proves_network: bool = True
    duration_ms: int = 0
    is_repeated: bool = False
    timings: Timings = Timings()
    request_head: bytes = b""
    address: str = ""
    response_headers: Sequence[tuple[bytes, bytes]] = ()

    @property
    def is_slow(self) -> bool:
        """Return True if nothing should wait behind this receiver."""
        return self.outcome in _SLOW


_SLOW = {Outcome.TIMEOUT, Outcome.CONNECT, Outcome.DNS}


class Client:
    """Makes attempts within some networks; `deadlines` bounds them.

    No cookies, no redirects, no decompression, no proxies or credentials from the environment:
    the only proxy is that of WEBHOOK_PROXY_URL.
    """

    def __init__(self, networks: AllowedNetworks, deadlines: Deadlines) -> None:
        self.deadlines = deadlines
        self.connections = Connections(networks, deadlines.loop)
        self.default_headers = {
            "User-Agent": webhook_settings.USER_AGENT,
            "Accept": "*/*",
            "Accept-Encoding": "identity",
        }

    def close(self) -> None:
        self.connections.close()


class _Ending(NamedTuple):
    """The fields of an AttemptResult from `outcome` to `proves_network`."""

    outcome: Outcome | None
    status_code: int | None = None
    error: str = ""
    retry_after: float | None = None
    body: bytes = b""
    proves_network: bool = True


async def attempt(request: OutgoingRequest, client: Client) -> AttemptResult:
    """Make one attempt within its deadline; raises nothing but a cancellation."""
    started_at, start, progress = datetime.now(UTC), time.perf_counter(), Progress()
    head, ending = await _try(request, client, progress, int(started_at.timestamp()))
    connection = progress.connection
    times = (
        progress.connected_at,
        progress.secured_at,
        connection.first_byte_at if connection else 0,
    )
    return AttemptResult(
        request.key,
        request.queue,
        started_at,
        *ending,
        round((time.perf_counter() - start) * 1000),
        progress.is_repeated,
        Timings(*[round((at - start) * 1000) if at else None for at in times]),
        head if connection else b"",
        connection.address if connection else "",
        _kept_headers(connection) if connection else (),
    )


def _kept_headers(connection: Connection) -> Sequence[tuple[bytes, bytes]]:
    """Return the first headers of a response, as many as KEPT_HEADER_BYTES hold."""
    kept, size = [], 0
    for name, value in connection.headers:
        size += len(name) + len(value)
        if size > KEPT_HEADER_BYTES:
            break
        kept.append((name, value))
    return kept


async def _try(
    request: OutgoingRequest, client: Client, progress: Progress, timestamp: int
) -> tuple[bytes, _Ending]:
    """Return the head of the request, and how the attempt ended."""
    head = b""
    try:
        headers, target = request.sign(timestamp), target_of(request.url)
        head = head_of(target, headers, client.default_headers, len(request.body))
        route = target.origin, request.owner
        with client.deadlines.within(request.timeout_s):
            connection = await client.connections.post(
                route, head, request.body, progress
            )
        return head, await _read_response(client, route, connection, progress)
    except SecretUnreadableError:
        error = "the signing secret cannot be read"
        return head, _Ending(Outcome.UNSIGNED, error=error)
    except SecretFormError as error:
        text = f"no headers of Standard Webhooks: {error}"
        return head, _Ending(Outcome.UNSIGNED, error=text)
    except Exception as error:  # one receiver must not stop the others
        forget_frames(error)
        return head, _failed(error, progress, request.timeout_s)


def _failed(error: Exception, progress: Progress, timeout_s: float) -> _Ending:
    # That of the system has a number.
    if isinstance(error, TimeoutError) and error.errno is None:
        return _timed_out(progress, timeout_s)
    if resource := local_failure(error):
        return _Ending(None, error=resource)
    outcome, text = classify(error)
    return _Ending(outcome, error=text)


def _timed_out(progress: Progress, timeout_s: float) -> _Ending:
    """Distinguish a slow receiver, one that was never reached, and a proxy that never was."""
    if progress.awaits_proxy:
        return _Ending(None, error=UNREACHABLE)
    is_new = bool(progress.connected_at)
    if progress.connection or is_new:
        text = f"no answer within {timeout_s:g} s"
        return _Ending(Outcome.TIMEOUT, error=text, proves_network=is_new)
    return _Ending(Outcome.CONNECT, error=f"no connection within {timeout_s:g} s")


async def _read_response(
    client: Client, route: Route, connection: Connection, progress: Progress
) -> _Ending:
    """Read a bounded part of the body; a receiver can make us neither wait nor store more.

    The connection serves again after a success alone. Receivers that refuse a request often leave
    its body unread, although RFC 9112 section 9.3 forbids it, and would read the next request as
    its continuation. Nor after a repetition: the receiver closes what we keep.
    """
    body = await _start_of_body(client, connection)
    status_code = connection.status_code or 0
    if 200 <= status_code < 300:
        if progress.is_repeated:
            connection.abort()
        else:
            client.connections.keep(route, connection)
        return _Ending(Outcome.OK, status_code, body=body)
    connection.abort()
    text = f"HTTP {status_code}"
    seconds, _ = retry_after(_pause(connection).strip().decode("latin-1"))
    return _Ending(Outcome.HTTP, status_code, text, seconds or None, body)


async def _start_of_body(client: Client, connection: Connection) -> bytes:
    """Return the start of a body. What fails here changes nothing: the status has decided."""
    body = bytearray()
    is_there = connection.has_ended
    limit = nullcontext() if is_there else client.deadlines.within(READ_FOR_S)
    try:
        with suppress(OSError, NotHttpError), limit:
            while len(body) <= READ_AT_MOST and (part := await connection.read()):
                body += part
    except BaseException:
        connection.abort()
        raise
    return bytes(body[:RESPONSE_BODY_BYTES])


def _pause(connection: Connection) -> bytes:
    pauses = (
        value for name, value in connection.headers if name.lower() == b"retry-after"
    )
    return next(pauses, b"")


async def can_connect(url: str, networks: AllowedNetworks) -> bool:
    """Return True if any address of a receiver accepts a connection. Nothing is sent."""
    connections = Connections(networks, asyncio.get_running_loop())
    with suppress(Exception):  # any error means that no receiver was reached
        async with asyncio.timeout(CONNECT_FOR_S):
            return await connections.can_connect(target_of(url).origin)
    return False
