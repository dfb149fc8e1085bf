"""One attempt: the only module that POSTs to subscribers."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from yarl import URL

from webhooks_core.conf import webhook_settings
from webhooks_core.encryption import SecretUnreadableError
from webhooks_core.network.addresses import AllowedNetworks
from webhooks_core.network.certificates import client_context
from webhooks_core.network.deadlines import Deadlines
from webhooks_core.network.error_classes import (
    BlockedAddressError,
    classify,
    local_failure,
)
from webhooks_core.network.resolver_threads import THREADS
from webhooks_core.outcomes import Outcome

RESPONSE_BODY_BYTES = 4096  # of a response, kept for people
# The status line decides. These bound the reading of a body, which only people look at.
READ_AT_MOST = 16 * 1024
READ_FOR_S = 1.0
# Of a response: the size of one header, and their number. More is not valid HTTP to us.
MAX_HEADER_BYTES = 32 * 1024
MAX_HEADERS = 256
CONNECT_FOR_S = 3.0
KEEP_ALIVE_S = 15.0


class OutgoingRequest(NamedTuple):
    """One attempt to make. At most `limit` requests of a `queue` run at once.

    An `immediate` one is released if it cannot start at once: later it would exceed its rate.
    `sign` returns the headers for a unix time in seconds. Raises SecretUnreadableError.
    `delivery_id` names the delivery in traces, `owner` whose share of the slots it takes.
    """

    key: int
    queue: int
    limit: int
    url: str
    body: bytes
    sign: Callable[[int], Mapping[str, str]]
    timeout_s: float
    networks: AllowedNetworks
    immediate: bool = False
    delivery_id: str = ""
    owner: tuple[str, str] = ("", "")


class AttemptResult(NamedTuple):
    """How an attempt ended; an `outcome` of None means that it was released without being made.

    Then `error` names the local resource that it lacked; "" means that it did not start in time.
    `proves_network` is false for a time-out on a reused connection: a network that drops
    everything first shows in this way.
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

    @property
    def is_slow(self) -> bool:
        """Return True if nothing should wait behind this receiver."""
        return self.outcome in _SLOW


_SLOW = {Outcome.TIMEOUT, Outcome.CONNECT, Outcome.DNS}

_Question = tuple[str, int, socket.AddressFamily]


class GuardedResolver(AbstractResolver):
    """Resolves names; refuses a name if any of its addresses is not allowed.

    A name whose servers hang occupies one thread, however often it is asked for.
    """

    def __init__(self, networks: AllowedNetworks) -> None:
        self._networks = networks
        self._open: dict[_Question, asyncio.Future[list[Any]]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        rows = await asyncio.shield(self._ask((host, port, family)))
        addresses = [str(address[0]).partition("%")[0] for *_, address in rows]
        if not self._networks.allows_all(addresses):
            raise BlockedAddressError
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address, (kind, _, protocol, *_) in zip(addresses, rows, strict=True)
        ]

    def _ask(self, question: _Question) -> asyncio.Future[list[Any]]:
        if question not in self._open:
            host, port, family = question
            ask = partial(
                socket.getaddrinfo,
                host,
                port,
                type=socket.SOCK_STREAM,
                family=family,
                flags=socket.AI_ADDRCONFIG,
            )
            # Not the loop's own getaddrinfo: uvloop has four threads for all names.
            future = asyncio.get_running_loop().run_in_executor(THREADS, ask)
            future.add_done_callback(partial(self._forget, question))
            self._open[question] = future
        return self._open[question]

    def _forget(self, question: _Question, future: asyncio.Future[list[Any]]) -> None:
        del self._open[question]
        if not future.cancelled():
            future.exception()  # retrieved, also if no task awaits it any longer

    async def close(self) -> None:
        for future in list(self._open.values()):
            future.cancel()


class _Progress:
    """How far an attempt got: the sockets that it opened, and whether it has a connection."""

    __slots__ = ("is_connected", "sockets")

    def __init__(self) -> None:
        self.is_connected = False
        self.sockets: list[socket.socket] = []

    def detach_sockets(self) -> None:
        """Detach sockets whose connection has failed: libuv has closed their descriptors.

        When a receiver resets a connection at once, uvloop does not mark the socket object as
        closed. It would close the same descriptor again, which may belong to another by then.
        """
        for opened in self.sockets:
            opened.detach()


# Of the attempt that the current task makes; a probe has none.
_progress: ContextVar[_Progress | None] = ContextVar("progress", default=None)


def guarded_socket(networks: AllowedNetworks, address_info: Any) -> socket.socket:
    """Open a socket for an allowed address; every connection is made with one.

    This check is the decisive one: literal addresses and later resolutions pass here too.
    """
    family, kind, protocol, _, address = address_info
    if not networks.allows(str(address[0]).partition("%")[0]):
        raise BlockedAddressError
    opened = socket.socket(family, kind, protocol)
    if progress := _progress.get():
        progress.sockets.append(opened)
    return opened


class _Handler(ResponseHandler):
    """Parses the head of a response by itself, so that nothing behind it spoils its status line.

    Some receivers send a body with 204, or malformed chunks: in one packet with the head, that
    would be an error instead of a success. aiohttp creates a handler once TCP is connected,
    before TLS.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        if progress := _progress.get():
            progress.is_connected = True

    def data_received(self, data: bytes) -> None:
        head, end, rest = data.partition(b"\r\n\r\n")
        super().data_received(head + end)
        if rest:
            super().data_received(rest)


class _Connector(aiohttp.TCPConnector):
    """Connects to allowed addresses only, and keeps connections."""

    def __init__(self, networks: AllowedNetworks) -> None:
        super().__init__(
            limit=0,
            resolver=GuardedResolver(networks),
            socket_factory=partial(guarded_socket, networks),
            ssl=client_context(),
            keepalive_timeout=KEEP_ALIVE_S,
        )
        self._resolver_owner = True  # closed with the connector
        self._factory: Any = partial(_Handler, loop=self._loop)

    async def connect(self, *args: Any, **options: Any) -> Connection:
        progress = _progress.get() or _Progress()
        try:
            connection = await super().connect(*args, **options)
        except BaseException:
            progress.detach_sockets()
            raise
        progress.is_connected = True  # also with a kept connection
        if connection.transport is None or connection.transport.is_closing():
            progress.detach_sockets()
        return connection


class Client(NamedTuple):
    """Makes attempts within some networks; `deadlines` bounds them."""

    session: aiohttp.ClientSession
    deadlines: Deadlines


def client(networks: AllowedNetworks, deadlines: Deadlines) -> Client:
    """Return a client that connects to allowed addresses only, and keeps connections.

    No cookies, no redirects, no decompression, no proxies or credentials from the environment.
    """
    session = aiohttp.ClientSession(
        connector=_Connector(networks),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        max_field_size=MAX_HEADER_BYTES,
        max_headers=MAX_HEADERS,
        trust_env=False,
        timeout=aiohttp.ClientTimeout(total=None),
        headers={
            "User-Agent": webhook_settings.USER_AGENT,
            "Accept": "*/*",
            "Accept-Encoding": "identity",
        },
    )
    return Client(session, deadlines)


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
    started_at, start = datetime.now(UTC), time.perf_counter()
    ending = await _try(request, client, int(started_at.timestamp()))
    duration_ms = round((time.perf_counter() - start) * 1000)
    return AttemptResult(request.key, request.queue, started_at, *ending, duration_ms)


async def _try(request: OutgoingRequest, client: Client, timestamp: int) -> _Ending:
    _progress.set(progress := _Progress())
    try:
        headers = request.sign(timestamp)
        with client.deadlines.within(request.timeout_s):
            response = await _post(request, client.session, headers, progress)
        return await _read_response(response, client.deadlines)
    except SecretUnreadableError:
        return _Ending(Outcome.UNSIGNED, error="the signing secret cannot be read")
    except TimeoutError:
        return _timed_out(progress, request.timeout_s)
    except Exception as error:  # noqa: BLE001 - one receiver must not stop the others
        if resource := local_failure(error):
            return _Ending(None, error=resource)
        outcome, text = classify(error)
        return _Ending(outcome, error=text)


def _timed_out(progress: _Progress, timeout_s: float) -> _Ending:
    """Distinguish a slow receiver from one that was never reached."""
    if progress.is_connected:
        is_fresh, text = bool(progress.sockets), f"no answer within {timeout_s:g} s"
        return _Ending(Outcome.TIMEOUT, error=text, proves_network=is_fresh)
    return _Ending(Outcome.CONNECT, error=f"no connection within {timeout_s:g} s")


async def _post(
    request: OutgoingRequest,
    session: aiohttp.ClientSession,
    headers: Mapping[str, str],
    progress: _Progress,
) -> aiohttp.ClientResponse:
    """POST; if a kept connection turns out to be closed, POST again on a new one."""
    post = partial(session.post, request.url, data=request.body, allow_redirects=False)
    try:
        return await post(headers=headers)
    except aiohttp.ClientConnectorError:
        raise  # a new connection was tried
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
        if progress.sockets:
            raise
    return await post(headers={**headers, "Connection": "close"})


async def _read_response(
    response: aiohttp.ClientResponse, deadlines: Deadlines
) -> _Ending:
    status_code = response.status
    body = await _read_body(response, deadlines)
    if 200 <= status_code < 300:
        return _Ending(Outcome.OK, status_code, body=body)
    pause = retry_after(response.headers.get("Retry-After", ""))
    return _Ending(Outcome.HTTP, status_code, f"HTTP {status_code}", pause, body)


async def _read_body(response: aiohttp.ClientResponse, deadlines: Deadlines) -> bytes:
    """Return the start of a body; a receiver can make us neither wait nor store more."""
    if response.content.is_eof() and not response.content.exception():
        return response.content.read_nowait(RESPONSE_BODY_BYTES)  # came with its head
    body = bytearray()
    # The status line has decided: an error from here on changes nothing.
    with suppress(Exception), deadlines.within(READ_FOR_S):
        while len(body) < READ_AT_MOST:
            chunk = await response.content.read(READ_AT_MOST - len(body))
            if not chunk:
                return bytes(body[:RESPONSE_BODY_BYTES])
            body += chunk
    response.close()  # not read to its end: the connection cannot serve another request
    return bytes(body[:RESPONSE_BODY_BYTES])


def retry_after(value: str) -> float | None:
    """Return a `Retry-After` in seconds; None for a date or a malformed value."""
    if value.isascii() and value.isdigit() and len(value) <= 6:
        return float(value)
    return None


async def can_connect(url: str, networks: AllowedNetworks) -> bool:
    """Return True if any address of a receiver accepts a connection. Nothing is sent."""
    target = URL(url)
    with suppress(Exception):  # any error means that no receiver was reached
        async with asyncio.timeout(CONNECT_FOR_S):
            resolver = GuardedResolver(networks)
            addresses = await resolver.resolve(target.host or "", target.port or 0)
        for address in addresses:
            if await _accepts(address, networks):
                return True
    return False


async def _accepts(resolved: ResolveResult, networks: AllowedNetworks) -> bool:
    address = (resolved["host"], resolved["port"])
    info = (resolved["family"], socket.SOCK_STREAM, 0, "", address)
    with suppress(Exception):  # this machine may not have this address family
        async with asyncio.timeout(CONNECT_FOR_S):
            with guarded_socket(networks, info) as opened:
                opened.setblocking(False)
                await asyncio.get_running_loop().sock_connect(opened, address)
                return True
    return False
