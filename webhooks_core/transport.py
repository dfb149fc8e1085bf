"""One attempt: the only module that POSTs to subscribers."""

from __future__ import annotations

import asyncio
import socket
import ssl
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

from webhooks_core.addresses import Reach
from webhooks_core.models import Outcome
from webhooks_core.models.deliveries import ANSWER_BYTES
from webhooks_core.secrets import SecretUnreadableError

READ_AT_MOST = 16 * 1024
# The answer is decided at its status line; its text is only for the eyes of people.
READ_FOR_S = 1.0
KEEP_ALIVE_S = 15.0
USER_AGENT = "Signpost"


class BlockedAddressError(OSError):
    """The host leads to an address that no webhook may be sent to."""


class Request(NamedTuple):
    """One attempt to be made. `lane` groups requests of which `limit` may run at once.

    `sign` returns the headers for a unix time in seconds. Raises SecretUnreadableError.
    """

    key: int
    lane: int
    limit: int
    url: str
    body: bytes
    sign: Callable[[int], Mapping[str, str]]
    timeout_s: float
    reach: Reach


class Answer(NamedTuple):
    """How an attempt ended; `outcome` None means that it was given back untried."""

    key: int
    lane: int
    started_at: datetime
    outcome: Outcome | None
    code: int | None = None
    error: str = ""
    retry_after: float | None = None
    body: bytes = b""
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

    def __init__(self, reach: Reach) -> None:
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
            answer = asyncio.get_running_loop().run_in_executor(None, ask)
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


# Whether an attempt made a connection of its own, told by the only place that makes them.
_connected: ContextVar[list[bool]] = ContextVar("connected")


def guarded_socket(reach: Reach, address_info: Any) -> socket.socket:
    """Make a socket for an address that may be called; nothing can connect without it.

    This is the check that counts: literal addresses and later resolutions pass here too.
    """
    family, kind, protocol, _, address = address_info
    if not reach.allows(str(address[0]).partition("%")[0]):
        raise BlockedAddressError
    if (connected := _connected.get(None)) is not None:
        connected.append(True)
    return socket.socket(family, kind, protocol)


class _Handler(ResponseHandler):
    """Reads the head of an answer by itself: nothing that follows can spoil its status line.

    Some receivers send a body with 204, or break their chunks: in one packet with the head,
    that would be an error in place of a success.
    """

    def data_received(self, data: bytes) -> None:
        head, end, rest = data.partition(b"\r\n\r\n")
        super().data_received(head + end)
        if rest:
            super().data_received(rest)


class _Connector(aiohttp.TCPConnector):
    """Connects within `reach` only and keeps connections."""

    def __init__(self, reach: Reach) -> None:
        super().__init__(
            limit=0,
            resolver=GuardedResolver(reach),
            socket_factory=partial(guarded_socket, reach),
            keepalive_timeout=KEEP_ALIVE_S,
        )
        self._resolver_owner = True  # closed with the connector
        self._factory: Any = partial(_Handler, loop=self._loop)


def client(reach: Reach) -> aiohttp.ClientSession:
    """Return a client that connects within `reach` only, keeps connections, and is not curious.

    No cookies, no redirects, no decompression, no proxies or credentials from the environment.
    """
    return aiohttp.ClientSession(
        connector=_Connector(reach),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        timeout=aiohttp.ClientTimeout(total=None),
        headers={
            "User-Agent": USER_AGENT,
            "Accept": "*/*",
            "Accept-Encoding": "identity",
        },
    )


async def attempt(request: Request, session: aiohttp.ClientSession) -> Answer:
    """Make one attempt within its deadline; raises nothing but a cancellation."""
    wall, started = datetime.now(UTC), time.perf_counter()
    answer = await _try(request, session, wall)
    return answer._replace(duration_ms=round((time.perf_counter() - started) * 1000))


async def _try(
    request: Request, session: aiohttp.ClientSession, wall: datetime
) -> Answer:
    try:
        headers = request.sign(int(wall.timestamp()))
        async with asyncio.timeout(request.timeout_s):
            response = await _post(request, session, headers)
        return await _answer(request, response, wall)
    except SecretUnreadableError:
        outcome, text = Outcome.UNSIGNED, "the signing secret cannot be read"
    except TimeoutError:
        outcome, text = Outcome.TIMEOUT, f"no answer within {request.timeout_s:g} s"
    except Exception as error:  # noqa: BLE001 - whatever a receiver does, the others go on
        outcome, text = classify(error)
    return Answer(request.key, request.lane, wall, outcome, error=text)


async def _post(
    request: Request, session: aiohttp.ClientSession, headers: Mapping[str, str]
) -> aiohttp.ClientResponse:
    """POST; when a kept connection turns out to be closed, POST again on a fresh one."""
    connected: list[bool] = []
    _connected.set(connected)
    try:
        return await session.post(
            request.url, data=request.body, headers=headers, allow_redirects=False
        )
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
        if connected:
            raise
    return await session.post(
        request.url,
        data=request.body,
        headers={**headers, "Connection": "close"},
        allow_redirects=False,
    )


async def _answer(
    request: Request, response: aiohttp.ClientResponse, wall: datetime
) -> Answer:
    """Return what an answer tells. Its status line has decided; the rest may fail."""
    code = response.status
    body = b"" if response.content.at_eof() else await _read(response)
    if 200 <= code < 300:
        return Answer(
            request.key, request.lane, wall, Outcome.OK, code, body=body[:ANSWER_BYTES]
        )
    return Answer(
        request.key,
        request.lane,
        wall,
        Outcome.HTTP,
        code,
        error=f"HTTP {code}",
        retry_after=retry_after(response.headers.get("Retry-After", "")),
        body=body[:ANSWER_BYTES],
    )


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """Return the start of an answer's text; a receiver cannot make us wait or store for it."""
    text = bytearray()
    with suppress(Exception):  # the status line has decided
        async with asyncio.timeout(READ_FOR_S):
            while len(text) < READ_AT_MOST:
                chunk = await response.content.read(READ_AT_MOST - len(text))
                if not chunk:
                    return bytes(text)
                text += chunk
    response.close()  # unread: the connection cannot serve another request
    return bytes(text)


def retry_after(value: str) -> float | None:
    """Return a `Retry-After` in seconds; dates and nonsense are ignored."""
    if value.isascii() and value.isdigit() and len(value) <= 6:
        return float(value)
    return None


def classify(error: BaseException) -> tuple[Outcome, str]:
    """Return what went wrong and a text for it, which tells no address."""
    causes = _chain(error)
    for kinds, outcome, text in _KINDS:
        if found := next((it for it in causes if isinstance(it, kinds)), None):
            return outcome, text or _tls_text(found)
    return Outcome.CONNECT, "the connection failed"


_KINDS: tuple[tuple[tuple[type[BaseException], ...], Outcome, str], ...] = (
    (
        (BlockedAddressError,),
        Outcome.BLOCKED,
        "the host leads to an address that is not public",
    ),
    ((socket.gaierror,), Outcome.DNS, "the host name could not be resolved"),
    ((ssl.SSLError, ssl.CertificateError, aiohttp.ClientSSLError), Outcome.TLS, ""),
    (
        (
            aiohttp.ServerDisconnectedError,
            ConnectionResetError,
            ConnectionAbortedError,
            BrokenPipeError,
        ),
        Outcome.CONNECT,
        "the connection was closed without an answer",
    ),
    ((ConnectionRefusedError,), Outcome.CONNECT, "the connection was refused"),
    (
        (aiohttp.ClientResponseError, aiohttp.ClientPayloadError),
        Outcome.HTTP,
        "the answer was not valid HTTP",
    ),
    ((aiohttp.InvalidURL,), Outcome.BLOCKED, "the url is malformed"),
)


def _tls_text(error: BaseException) -> str:
    inner = getattr(error, "certificate_error", error)
    reason = getattr(inner, "verify_message", "") or getattr(inner, "reason", "")
    return f"TLS failed: {reason or 'handshake'}"[:200]


def _chain(error: BaseException) -> list[BaseException]:
    """Return an error and what is behind it: aiohttp wraps, and its cause may be a group."""
    found: list[BaseException] = []
    open_ends: list[BaseException | None] = [error]
    while open_ends and len(found) < 32:
        it = open_ends.pop()
        if it is None or it in found:
            continue
        found.append(it)
        open_ends += [it.__cause__, it.__context__, getattr(it, "os_error", None)]
        open_ends += getattr(it, "exceptions", ())
    return found
