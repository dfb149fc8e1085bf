"""The egress proxy of WEBHOOK_PROXY_URL: it opens tunnels to addresses that were checked here."""

from __future__ import annotations

import asyncio
import re
import socket
from base64 import b64encode
from functools import lru_cache, partial
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from aiohappyeyeballs import start_connection

from webhooks_core.network.addresses import THREADS
from webhooks_core.network.errors import (
    NotHttpError,
    ProxyRefusedError,
    ProxyUnavailableError,
)

MAX_HEAD_BYTES = 16 * 1024
UNREACHABLE = "the egress proxy could not be reached"
NO_ANSWER = "the egress proxy closed the connection without an answer"
NOT_HTTP = "the egress proxy sent something that is not HTTP"
UNAUTHORIZED = "the egress proxy refused our user name and password"
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5]\d\d)[ \r]")


class Proxy(NamedTuple):
    """Where the proxy listens, and the header that logs in there, if any."""

    host: str
    port: int
    authorization: str


@lru_cache(maxsize=4)
def parse(url: str) -> Proxy:
    """Read `http://[user:password@]host:port`. Raises ValueError, without the URL in its text."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port or parts.scheme != "http":
        raise ValueError("not http://host:port")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError("more than http://host:port")
    login = ":".join(unquote(part or "") for part in (parts.username, parts.password))
    basic = b64encode(login.encode()).decode()
    header = f"Proxy-Authorization: Basic {basic}\r\n" if parts.username else ""
    return Proxy(host, port, header)


async def connect(loop: asyncio.AbstractEventLoop, url: str) -> socket.socket:
    """Return a socket that is connected to the proxy. Raises ProxyUnavailableError."""
    try:
        proxy = parse(url)
        ask = partial(socket.getaddrinfo, *proxy[:2], type=socket.SOCK_STREAM)
        infos = await loop.run_in_executor(THREADS, ask)
        return await start_connection(infos, happy_eyeballs_delay=0.25, loop=loop)
    except (OSError, ValueError) as error:
        raise ProxyUnavailableError(UNREACHABLE) from error


async def open_tunnel(
    loop: asyncio.AbstractEventLoop,
    opened: socket.socket,
    address: str,
    port: int,
    url: str,
) -> None:
    """Have the proxy connect a socket to an address; the next byte on it is the receiver's.

    Raises, and closes the socket: ProxyUnavailableError, ProxyRefusedError, or NotHttpError for a
    receiver that sends bytes before it is asked.
    """
    authority = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    login = parse(url).authorization
    request = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{login}\r\n"
    try:
        _check(*await _answer(loop, opened, request.encode()))
    except BaseException:
        opened.close()
        raise


async def _answer(
    loop: asyncio.AbstractEventLoop, opened: socket.socket, request: bytes
) -> tuple[bytes, bytes]:
    """Return the head of the proxy's answer, b"" for none, and what came with it."""
    data = b""
    try:
        await loop.sock_sendall(opened, request)
        while b"\r\n\r\n" not in data and len(data) <= MAX_HEAD_BYTES:
            received = await loop.sock_recv(opened, 4096)
            if not received:
                raise ConnectionResetError
            data += received
    except OSError as error:
        raise ProxyUnavailableError(NO_ANSWER) from error
    head, end, rest = data.partition(b"\r\n\r\n")
    return (head + end if end else b""), rest


def _check(head: bytes, rest: bytes) -> None:
    match = _STATUS.match(head)
    if not match:
        raise ProxyUnavailableError(NOT_HTTP)
    status = int(match[1])
    if status in {401, 407}:  # tinyproxy answers a wrong password with 401
        raise ProxyUnavailableError(UNAUTHORIZED)
    if not 200 <= status < 300:
        raise ProxyRefusedError(status)
    if rest:
        raise NotHttpError
