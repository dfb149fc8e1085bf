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


class GuardedResolver(AbstractResolver):
    """Resolves names; refuses a name of which any address may not be called."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._system = aiohttp.ThreadedResolver()

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,
    ) -> list[ResolveResult]:
        found = await self._system.resolve(host, port, family)
        if not self._reach.allows_all(result["host"] for result in found):
            raise BlockedAddressError
        return found

    async def close(self) -> None:
        await self._system.close()


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


def client(reach: Reach) -> aiohttp.ClientSession:
    """Return a client that connects within `reach` only, keeps connections, and is not curious.

    No cookies, no redirects, no decompression, no proxies or credentials from the environment.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=0,
            resolver=GuardedResolver(reach),
            socket_factory=partial(guarded_socket, reach),
            keepalive_timeout=KEEP_ALIVE_S,
        ),
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
    with suppress(TimeoutError, aiohttp.ClientError, OSError):
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
        (aiohttp.ServerDisconnectedError,),
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
