"""POSTs to servers that the operator names: their answers are read in parts.

No cookies, no redirects, no credentials or proxies from the environment. Unlike webhooks, requests
may go to private addresses.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from aiohappyeyeballs import start_connection

from webhooks_core.network import proxy
from webhooks_core.network.addresses import AllowedNetworks
from webhooks_core.network.answers import AnswerConnection
from webhooks_core.network.certificates import client_context
from webhooks_core.network.deadlines import within
from webhooks_core.network.kept import KeptConnections
from webhooks_core.network.request_head import Origin, Target, head_of, target_of
from webhooks_core.network.resolver import GuardedResolver

KEEP_ALIVE_S = 30.0
NEXT_ADDRESS_S = 0.25


class EveryNetwork(AllowedNetworks):
    def allows(self, text: str) -> bool:
        return True


class Route(NamedTuple):
    """Where a connection leads, and the proxy that it goes through."""

    origin: Origin
    proxy: str


@dataclass(slots=True)
class Answer:
    """An answer whose head is there. Whoever gets it closes it."""

    connection: AnswerConnection
    route: Route
    client: HttpClient

    @property
    def status(self) -> int:
        return self.connection.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self.connection.headers

    async def read(self) -> bytes:
        """Return the next part of the body, b"" at its end. Raises OSError, NotHttpError."""
        return await self.connection.read()

    def close(self) -> None:
        """Keep the connection if the answer was read to its end, else close it."""
        self.client.keep(self.route, self.connection)


class HttpClient:
    """Connections of one event loop. `defaults` are headers that a request may replace."""

    def __init__(self, defaults: Mapping[str, str]) -> None:
        self._loop = asyncio.get_running_loop()
        self._defaults = defaults
        self._resolver = GuardedResolver(EveryNetwork())
        self._tls = client_context()
        self._kept = KeptConnections[Route, AnswerConnection](
            self._loop, KEEP_ALIVE_S, self._resolver.forget
        )
        self.closed = False

    async def post(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        connect_s: float,
        through: str = "",
    ) -> Answer:
        """POST, and return the answer when its head is there; `through` is the URL of a proxy.

        Repeated once, on another connection, if a kept connection ends before any byte of an
        answer. Raises OSError, NotHttpError; ValueError for a URL or header that cannot be sent.
        """
        target = target_of(url)
        route = Route(target.origin, through)
        if through and not target.origin.is_tls:
            target, headers = _by_proxy(target, headers, through)
        head = head_of(target, headers, self._defaults, len(body))
        if (connection := self._kept.take(route)) is not None:
            try:
                return await self._exchange(connection, route, head, body)
            except OSError:
                if connection.has_answered:
                    raise
        with within(connect_s):
            connection = await self._open(route)
        return await self._exchange(connection, route, head, body)

    async def _exchange(
        self, connection: AnswerConnection, route: Route, head: bytes, body: bytes
    ) -> Answer:
        try:
            await connection.exchange(head, body)
        except BaseException:
            connection.abort()
            raise
        return Answer(connection, route, self)

    def keep(self, route: Route, connection: AnswerConnection) -> None:
        """Keep a connection for the next request, or close it if it cannot serve one."""
        if self.closed:
            connection.abort()
        else:
            self._kept.keep(route, connection)

    async def _open(self, route: Route) -> AnswerConnection:
        origin = route.origin
        if route.proxy:
            at = proxy.parse(route.proxy)
            opened = await self._connected(at.host, at.port)
            if origin.is_tls:
                await self._tunnel(opened, origin, at)
        else:
            opened = await self._connected(origin.host, origin.port)
        _, connection = await self._loop.create_connection(
            partial(AnswerConnection, self._loop),
            sock=opened,
            ssl=self._tls if origin.is_tls else None,
            server_hostname=origin.host.rstrip(".") if origin.is_tls else None,
        )
        return connection

    async def _connected(self, host: str, port: int) -> socket.socket:
        infos = await self._resolver.resolve(host, port)
        return await start_connection(
            list(infos), happy_eyeballs_delay=NEXT_ADDRESS_S, loop=self._loop
        )

    async def _tunnel(
        self, opened: socket.socket, origin: Origin, at: proxy.Proxy
    ) -> None:
        try:
            await proxy.open_tunnel(
                self._loop, opened, origin.host, origin.port, at.authorization
            )
        except BaseException:
            opened.close()
            raise

    async def close(self) -> None:
        self.closed = True
        self._resolver.close()
        self._kept.close()


def _by_proxy(
    target: Target, headers: Mapping[str, str], url: str
) -> tuple[Target, Mapping[str, str]]:
    """Return a request in the form that a proxy takes (RFC 9112 section 3.2.2)."""
    method, _, rest = target.start.partition(" ")
    authority = rest.partition("Host: ")[2].rstrip()
    start = f"{method} http://{authority}{rest}"
    if login := proxy.parse(url).authorization:
        name, _, value = login.rstrip().partition(": ")
        headers = {name: value, **headers}
    return Target(target.origin, start), headers
