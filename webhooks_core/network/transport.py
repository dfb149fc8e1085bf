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

READ_AT_MOST = 16 * 1024
RESPONSE_BODY_BYTES = 4096  # of a receiver's answer, kept for people
# The answer is decided at its status line; its text is only for the eyes of people.
READ_FOR_S = 1.0
# The headers of an answer: so much of each, and so many. More is no answer to us.
MAX_HEADER_BYTES = 32 * 1024
MAX_HEADERS = 256
CONNECT_FOR_S = 3.0
KEEP_ALIVE_S = 15.0


class OutgoingRequest(NamedTuple):
    """One attempt to be made. `queue` groups requests of which `limit` may run at once.

    One that is `immediate` is released if it cannot start at once: later would break its rate.
    `sign` returns the headers for a unix time in seconds. Raises SecretUnreadableError.
    `delivery_id` names the delivery in traces.
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


class AttemptResult(NamedTuple):
    """How an attempt ended; `outcome` None means that it was released without being made.

    Then `error` says why, if it was not for lack of time. `proves_network` is false for silence
    on a reused connection: in a network that drops everything that is the first sign.
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
        """Whether the receiver is one behind which nothing should wait."""
        return self.outcome in _SLOW


_SLOW = frozenset({Outcome.TIMEOUT, Outcome.CONNECT, Outcome.DNS})


_Question = tuple[str, int, socket.AddressFamily]


class GuardedResolver(AbstractResolver):
    """Resolves names; refuses a name of which any address may not be called.

    A name whose servers hang keeps one thread, however often it is asked for.
    """

    def __init__(self, reach: AllowedNetworks) -> None:
        self._reach = reach
        self._open: dict[_Question, asyncio.Future[list[Any]]] = {}

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,
    ) -> list[ResolveResult]:
        found = await asyncio.shield(self._ask((host, port, family)))
        addresses = [str(address[0]).partition("%")[0] for *_, address in found]
        if not self._reach.allows_all(addresses):
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
            for address, (kind, _, protocol, *_) in zip(addresses, found, strict=True)
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
            # Not the loop's own getaddrinfo: that of uvloop has four threads for everybody.
            answer = asyncio.get_running_loop().run_in_executor(THREADS, ask)
            answer.add_done_callback(partial(self._forget, question))
            self._open[question] = answer
        return self._open[question]

    def _forget(self, question: _Question, answer: asyncio.Future[list[Any]]) -> None:
        del self._open[question]
        if not answer.cancelled():
            answer.exception()  # seen, also when nobody waits any longer

    async def close(self) -> None:
        for answer in list(self._open.values()):
            answer.cancel()


class _Way:
    """How far an attempt got: which sockets it made, and whether it has a connection."""

    __slots__ = ("connected", "sockets")

    def __init__(self) -> None:
        self.connected = False
        self.sockets: list[socket.socket] = []

    def disown(self) -> None:
        """Let go of sockets whose connection has failed; libuv has closed those it was given.

        uvloop forgets to say so to a socket object when the receiver resets a connection at once.
        It would close the number of its descriptor a second time, be it another's by then.
        """
        for it in self.sockets:
            it.detach()


# Told by the only places that make sockets and hand out connections.
_way: ContextVar[_Way] = ContextVar("way")


def _note_connected() -> None:
    if (way := _way.get(None)) is not None:
        way.connected = True


def guarded_socket(reach: AllowedNetworks, address_info: Any) -> socket.socket:
    """Make a socket for an address that may be called; nothing can connect without it.

    This is the check that counts: literal addresses and later resolutions pass here too.
    """
    family, kind, protocol, _, address = address_info
    if not reach.allows(str(address[0]).partition("%")[0]):
        raise BlockedAddressError
    made = socket.socket(family, kind, protocol)
    if (way := _way.get(None)) is not None:
        way.sockets.append(made)
    return made


class _Handler(ResponseHandler):
    """Reads the head of an answer by itself: nothing that follows can spoil its status line.

    Some receivers send a body with 204, or break their chunks: in one packet with the head,
    that would be an error in place of a success. Made when somebody answered: before TLS.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        _note_connected()

    def data_received(self, data: bytes) -> None:
        head, end, rest = data.partition(b"\r\n\r\n")
        super().data_received(head + end)
        if rest:
            super().data_received(rest)


class _Connector(aiohttp.TCPConnector):
    """Connects within `reach` only and keeps connections."""

    def __init__(self, reach: AllowedNetworks) -> None:
        super().__init__(
            limit=0,
            resolver=GuardedResolver(reach),
            socket_factory=partial(guarded_socket, reach),
            ssl=client_context(),
            keepalive_timeout=KEEP_ALIVE_S,
        )
        self._resolver_owner = True  # closed with the connector
        self._factory: Any = partial(_Handler, loop=self._loop)

    async def connect(self, *args: Any, **options: Any) -> Connection:
        way = _way.get()
        try:
            connection = await super().connect(*args, **options)
        except BaseException:
            way.disown()
            raise
        way.connected = True  # it may be one that was kept
        if way.sockets and (
            connection.transport is None or connection.transport.is_closing()
        ):
            way.disown()
        return connection


class Client(NamedTuple):
    """What makes attempts within one reach; `deadlines` holds them to their deadlines."""

    session: aiohttp.ClientSession
    deadlines: Deadlines


def client(reach: AllowedNetworks, deadlines: Deadlines) -> Client:
    """Return a client that connects within `reach` only, keeps connections, and is not curious.

    No cookies, no redirects, no decompression, no proxies or credentials from the environment.
    """
    session = aiohttp.ClientSession(
        connector=_Connector(reach),
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


class _Finding(NamedTuple):
    """How an attempt ended, without when and whose it was."""

    outcome: Outcome | None
    code: int | None = None
    error: str = ""
    retry_after: float | None = None
    body: bytes = b""
    shows_network: bool = True


async def attempt(request: OutgoingRequest, client: Client) -> AttemptResult:
    """Make one attempt within its deadline; raises nothing but a cancellation."""
    wall, started = datetime.now(UTC), time.perf_counter()
    found = await _try(request, client, int(wall.timestamp()))
    duration_ms = round((time.perf_counter() - started) * 1000)
    return AttemptResult(request.key, request.queue, wall, *found, duration_ms)


async def _try(request: OutgoingRequest, client: Client, timestamp: int) -> _Finding:
    _way.set(way := _Way())
    try:
        headers = request.sign(timestamp)
        with client.deadlines.within(request.timeout_s):
            response = await _post(request, client.session, headers, way)
        return await _answer(response, client.deadlines)
    except SecretUnreadableError:
        return _Finding(Outcome.UNSIGNED, error="the signing secret cannot be read")
    except TimeoutError:
        return _late(way, request.timeout_s)
    except Exception as error:  # noqa: BLE001 - whatever a receiver does, the others go on
        if lack := local_failure(error):
            return _Finding(None, error=lack)
        outcome, text = classify(error)
        return _Finding(outcome, error=text)


def _late(way: _Way, timeout_s: float) -> _Finding:
    """Tell who was slow from who was not there: a network that swallows all is such a one."""
    if way.connected:
        text, is_fresh = f"no answer within {timeout_s:g} s", bool(way.sockets)
        return _Finding(Outcome.TIMEOUT, error=text, shows_network=is_fresh)
    return _Finding(Outcome.CONNECT, error=f"no connection within {timeout_s:g} s")


async def _post(
    request: OutgoingRequest,
    session: aiohttp.ClientSession,
    headers: Mapping[str, str],
    way: _Way,
) -> aiohttp.ClientResponse:
    """POST; when a kept connection turns out to be closed, POST again on a fresh one."""
    try:
        return await session.post(
            request.url, data=request.body, headers=headers, allow_redirects=False
        )
    except aiohttp.ClientConnectorError:
        raise  # a fresh one was tried, and was not to be had
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
        if way.sockets:
            raise
    return await session.post(
        request.url,
        data=request.body,
        headers={**headers, "Connection": "close"},
        allow_redirects=False,
    )


async def _answer(response: aiohttp.ClientResponse, deadlines: Deadlines) -> _Finding:
    """Return what an answer tells. Its status line has decided; the rest may fail."""
    code = response.status
    body = await _read(response, deadlines)
    if 200 <= code < 300:
        return _Finding(Outcome.OK, code, body=body)
    pause = retry_after(response.headers.get("Retry-After", ""))
    return _Finding(Outcome.HTTP, code, f"HTTP {code}", pause, body)


async def _read(response: aiohttp.ClientResponse, deadlines: Deadlines) -> bytes:
    """Return the start of an answer's text; a receiver cannot make us wait or store for it."""
    if response.content.is_eof() and not response.content.exception():
        return response.content.read_nowait(RESPONSE_BODY_BYTES)  # came with its head
    text = bytearray()
    # The status line has decided: whatever goes wrong from here on changes nothing.
    with suppress(Exception), deadlines.within(READ_FOR_S):
        while len(text) < READ_AT_MOST:
            chunk = await response.content.read(READ_AT_MOST - len(text))
            if not chunk:
                return bytes(text[:RESPONSE_BODY_BYTES])
            text += chunk
    response.close()  # unread: the connection cannot serve another request
    return bytes(text[:RESPONSE_BODY_BYTES])


def retry_after(value: str) -> float | None:
    """Return a `Retry-After` in seconds; dates and nonsense are ignored."""
    if value.isascii() and value.isdigit() and len(value) <= 6:
        return float(value)
    return None


async def connects(url: str, reach: AllowedNetworks) -> bool:
    """Tell whether a receiver can be connected to, at any of its addresses. Nothing is sent."""
    target = URL(url)
    with suppress(Exception):  # whatever it was: nobody was reached
        async with asyncio.timeout(CONNECT_FOR_S):
            resolver = GuardedResolver(reach)
            found = await resolver.resolve(target.host or "", target.port or 0)
        for it in found:
            if await _opens(it, reach):
                return True
    return False


async def _opens(found: ResolveResult, reach: AllowedNetworks) -> bool:
    address = (found["host"], found["port"])
    info = (found["family"], socket.SOCK_STREAM, 0, "", address)
    with suppress(Exception):  # its protocol may have no way out of here
        async with asyncio.timeout(CONNECT_FOR_S):
            with guarded_socket(reach, info) as it:
                it.setblocking(False)
                await asyncio.get_running_loop().sock_connect(it, address)
                return True
    return False
