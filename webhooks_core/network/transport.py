"""One attempt: the only module that POSTs to subscribers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from webhooks_core.conf import webhook_settings
from webhooks_core.network.addresses import AllowedNetworks
from webhooks_core.network.connection import Connection, retry_after, target_of
from webhooks_core.network.deadlines import within
from webhooks_core.network.errors import (
    NotHttpError,
    Outcome,
    classify,
    forget_frames,
    local_failure,
)
from webhooks_core.network.pool import Connections, Progress
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


@dataclass(slots=True)
class AttemptResult:
    """How an attempt ended, written down as it goes on.

    An `outcome` of None means that it was released without being made. Then `error` names what it
    lacked here, such as a descriptor or the egress proxy; "" means that it did not start in time.
    `proves_network` is false for a time-out on a reused connection: a network that drops
    everything first shows in this way. `is_repeated` is true if a kept connection turned out to be
    closed, and the request was sent once more. From `timings` on it tells people what was sent to
    which address when, and what headers came back: milliseconds since the start of the attempt until
    it was connected, secured (neither on a kept connection), and had the first byte.
    """

    key: int
    queue: int
    started_at: datetime
    outcome: Outcome | None = None
    status_code: int | None = None
    error: str = ""
    retry_after: float | None = None
    body: bytes = b""
    proves_network: bool = True
    duration_ms: int = 0
    is_repeated: bool = False
    timings: Sequence[int | None] = (None, None, None)
    request_head: bytes = b""
    address: str = ""
    response_headers: Sequence[tuple[bytes, bytes]] = ()

    @property
    def is_slow(self) -> bool:
        """Return True if nothing should wait behind this receiver."""
        return self.outcome in _SLOW


_SLOW = (Outcome.TIMEOUT, Outcome.CONNECT, Outcome.DNS)


def connections_in(
    networks: AllowedNetworks, loop: asyncio.AbstractEventLoop
) -> Connections:
    """Return connections for attempts within some networks.

    No cookies, no redirects, no decompression, no proxies or credentials from the environment:
    the only proxy is that of WEBHOOK_PROXY_URL.
    """
    defaults = {
        "User-Agent": webhook_settings.USER_AGENT,
        "Accept": "*/*",
        "Accept-Encoding": "identity",
    }
    return Connections(networks, loop, defaults)


async def attempt(request: OutgoingRequest, connections: Connections) -> AttemptResult:
    """Make one attempt within its deadline; raises nothing but a cancellation."""
    result = AttemptResult(request.key, request.queue, datetime.now(UTC))
    start, progress = time.perf_counter(), Progress()
    await _try(request, connections, progress, result)
    result.duration_ms = round((time.perf_counter() - start) * 1000)
    result.is_repeated = progress.is_repeated
    first_byte_at = 0.0
    if connection := progress.connection:
        first_byte_at = connection.first_byte_at
        result.request_head, result.address = progress.head, connection.address
        result.response_headers = _kept_headers(connection)
    times = (progress.connected_at, progress.secured_at, first_byte_at)
    result.timings = [round((at - start) * 1000) if at else None for at in times]
    return result


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
    request: OutgoingRequest,
    connections: Connections,
    progress: Progress,
    result: AttemptResult,
) -> None:
    """Send the request, and write down how that ended."""
    try:
        headers = request.sign(int(time.time()))
        target = target_of(request.url)
        with within(request.timeout_s):
            connection = await connections.post(
                target, request.owner, headers, request.body, progress
            )
        await _read_response(connections, connection, progress, result)
    except (SecretUnreadableError, SecretFormError):
        result.outcome = Outcome.UNSIGNED
        result.error = "the signing secret cannot be read"
    except Exception as error:  # one receiver must not stop the others
        forget_frames(error)
        # That of the system has a number.
        if isinstance(error, TimeoutError) and error.errno is None:
            _time_out(progress, request.timeout_s, result)
        elif resource := local_failure(error):
            result.error = resource
        else:
            result.outcome, result.error = classify(error)


def _time_out(progress: Progress, timeout_s: float, result: AttemptResult) -> None:
    """Distinguish a slow receiver, one that was never reached, and a proxy that never was."""
    if progress.awaits_proxy:
        result.error = UNREACHABLE
    elif progress.connection or progress.connected_at:
        result.outcome = Outcome.TIMEOUT
        result.error = f"no answer within {timeout_s:g} s"
        result.proves_network = bool(progress.connected_at)
    else:
        result.outcome = Outcome.CONNECT
        result.error = f"no connection within {timeout_s:g} s"


async def _read_response(
    connections: Connections,
    connection: Connection,
    progress: Progress,
    result: AttemptResult,
) -> None:
    """Read a bounded part of the body; a receiver can make us neither wait nor store more.

    The connection serves again after a success alone. Receivers that refuse a request often leave
    its body unread, although RFC 9112 section 9.3 forbids it, and would read the next request as
    its continuation. Nor after a repetition: the receiver closes what we keep.
    """
    result.body = await _start_of_body(connection)
    result.status_code = status_code = connection.status_code or 0
    if 200 <= status_code < 300:
        result.outcome = Outcome.OK
        if progress.is_repeated:
            connection.abort()
        else:
            connections.keep(connection)
        return
    connection.abort()
    result.outcome, result.error = Outcome.HTTP, f"HTTP {status_code}"
    pauses = (v for name, v in connection.headers if name.lower() == b"retry-after")
    seconds, _ = retry_after(next(pauses, b"").strip().decode("latin-1"))
    result.retry_after = seconds or None


async def _start_of_body(connection: Connection) -> bytes:
    """Return the start of a body. What fails here changes nothing: the status has decided."""
    body = bytearray()
    limit = nullcontext() if connection.has_ended else within(READ_FOR_S)
    try:
        with limit:
            while len(body) <= READ_AT_MOST and (part := await connection.read()):
                body += part
    except (OSError, NotHttpError):
        pass
    except BaseException:
        connection.abort()
        raise
    return bytes(body[:RESPONSE_BODY_BYTES])


async def can_connect(url: str, networks: AllowedNetworks) -> bool:
    """Return True if any address of a receiver accepts a connection. Nothing is sent."""
    connections = connections_in(networks, asyncio.get_running_loop())
    with suppress(Exception):  # any error means that no receiver was reached
        async with asyncio.timeout(CONNECT_FOR_S):
            return await connections.can_connect(target_of(url).origin)
    return False
