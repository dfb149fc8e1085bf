"""Connections to receivers: opened to allowed addresses only, and kept for a while.

Owners do not share connections. Whatever a receiver does to one of them after its response (it stops
reading, or sends something more) concerns the next request of the same owner only.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from functools import cache, partial
from ipaddress import ip_address

from aiohappyeyeballs import start_connection
from django.conf import settings

from webhooks_core.conf import webhook_settings
from webhooks_core.network import proxy
from webhooks_core.network.addresses import (
    AddressInfo,
    AllowedNetworks,
    BlockedAddressError,
    GuardedResolver,
    check_address,
    guarded_socket,
    is_public,
)
from webhooks_core.network.connection import Connection, Origin, Route, Target, head_of
from webhooks_core.network.deadlines import within
from webhooks_core.network.errors import ProxyRefusedError

KEEP_ALIVE_S = 30.0
KEEP_MOST = 512
# How long an address may take to connect until the next one of its name is tried too.
NEXT_ADDRESS_S = 0.25
# The owner (profile, name) that requests are made for.
Owner = tuple[str, str]


class Progress:
    """How far a request got; times are those of `time.perf_counter`, 0 if it did not get there.

    `head` was sent on `connection`; `connected_at` is the time of TCP, before TLS, on a
    new one. `awaits_proxy` is true until the egress proxy has accepted a connection. `is_repeated`
    is true if a kept connection turned out to be closed.
    """

    __slots__ = (
        "awaits_proxy",
        "connected_at",
        "connection",
        "head",
        "is_repeated",
        "secured_at",
    )

    def __init__(self) -> None:
        self.is_repeated = self.awaits_proxy = False
        self.connected_at = self.secured_at = 0.0
        self.head = b""
        self.connection: Connection | None = None


class Connections:
    """The connections of one event loop within some networks.

    The last one kept on a route is used first. Each is kept for KEEP_ALIVE_S, and KEEP_MOST of
    them. `defaults` are headers that a request may replace.
    """

    def __init__(
        self,
        networks: AllowedNetworks,
        loop: asyncio.AbstractEventLoop,
        defaults: Mapping[str, str],
    ) -> None:
        self._networks = networks
        self._loop = loop
        self._defaults = defaults
        self._resolver = GuardedResolver(networks)
        self._tls = client_context()
        self._kept: dict[Route, list[tuple[float, Connection]]] = {}
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def post(
        self,
        target: Target,
        owner: Owner,
        headers: Mapping[str, str],
        body: bytes,
        progress: Progress,
        *,
        connect_s: float | None = None,
    ) -> Connection:
        """Send a request, and return its connection when the head of a response is there.

        Repeated once, on a new connection, if a kept one ends before any byte of a response.
        Raises OSError, NotHttpError; ValueError for a header that cannot be sent.
        """
        progress.head = head = head_of(target, headers, self._defaults, len(body))
        route = target.origin, owner
        if connection := self._take(route):
            progress.connection = connection
            try:
                await connection.exchange(head, body)
            except OSError:
                if connection.first_byte_at:
                    raise
            else:
                return connection
            progress.connection, progress.is_repeated = None, True
        with within(connect_s):
            connection = await self._open(target.origin, progress)
        connection.route = route
        progress.connection = connection
        await connection.exchange(head, body)
        return connection

    def _take(self, route: Route) -> Connection | None:
        """Return a connection, which is then no longer kept; None if there is none."""
        kept = self._kept.pop(route, None)
        while kept:
            _, connection = kept.pop()
            self._count -= 1
            if connection.is_reusable:
                if kept:
                    self._kept[route] = kept
                connection.begin()
                return connection
            connection.abort()
        return None

    def keep(self, connection: Connection) -> None:
        """Keep a connection for the next request, or close it if it cannot serve one."""
        if self._is_closed or self._count >= KEEP_MOST or not connection.is_reusable:
            connection.abort()
            return
        until = self._loop.time() + KEEP_ALIVE_S
        self._kept.setdefault(connection.route, []).append((until, connection))
        self._count += 1
        self._start_timer()

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(KEEP_ALIVE_S / 2, self._expire)

    def _expire(self) -> None:
        """Close and forget what is out of date; without anything kept there is no timer."""
        now, self._timer = self._loop.time(), None
        for route, kept in list(self._kept.items()):
            while kept and kept[0][0] <= now:
                kept.pop(0)[1].abort()
                self._count -= 1
            if not kept:
                del self._kept[route]
        if self._resolver.forget(now) or self._kept:
            self._start_timer()

    async def _open(self, origin: Origin, progress: Progress) -> Connection:
        """Connect to one of the addresses of an origin. Raises OSError."""
        self._start_timer()  # for the names that are looked up now
        infos = await self._resolver.resolve(origin.host, origin.port)
        opened, info = await self._connected(infos, progress)
        return await self._secured(origin, opened, str(info[4][0]), progress)

    async def can_connect(self, origin: Origin) -> bool:
        """Return True if an address of an origin accepts a connection. Raises OSError."""
        infos = await self._resolver.resolve(origin.host, origin.port)
        (await self._connected(infos, Progress()))[0].close()
        return True

    async def _connected(
        self, infos: Sequence[AddressInfo], progress: Progress
    ) -> tuple[socket.socket, AddressInfo]:
        """Return a socket that is connected to the first address that accepts, and the address.

        With an egress proxy none of them is public, or all are reached through it.
        """
        direct = [info for info in infos if not _is_proxied(info)]
        if not direct:
            opened, info = await self._tunnelled(infos, progress)
        else:
            sockets: dict[socket.socket, AddressInfo] = {}
            opened = await start_connection(
                direct,
                happy_eyeballs_delay=NEXT_ADDRESS_S,
                loop=self._loop,
                socket_factory=partial(self._socket, sockets),
            )
            info = sockets[opened]
        progress.connected_at = time.perf_counter()
        return opened, info

    async def _tunnelled(
        self, infos: Sequence[AddressInfo], progress: Progress
    ) -> tuple[socket.socket, AddressInfo]:
        """Return a tunnel to the first address that the egress proxy connects to."""
        refusal: Exception = BlockedAddressError()
        # IPv4 first: fewer proxies have IPv6, and one that drops it would use up the deadline.
        for info in sorted(infos, key=lambda info: info[0] != socket.AF_INET):
            check_address(self._networks, info)
            progress.awaits_proxy = True
            opened = await proxy.connect(self._loop, webhook_settings.PROXY_URL)
            progress.awaits_proxy = False
            try:
                await proxy.open_tunnel(
                    self._loop, opened, *info[4], webhook_settings.PROXY_URL
                )
            except ProxyRefusedError as error:
                refusal = error
            else:
                return opened, info
        raise refusal

    def _socket(
        self, sockets: dict[socket.socket, AddressInfo], info: AddressInfo
    ) -> socket.socket:
        opened = guarded_socket(self._networks, info)
        sockets[opened] = info
        return opened

    async def _secured(
        self, origin: Origin, opened: socket.socket, address: str, progress: Progress
    ) -> Connection:
        """Return the connection of a socket, which belongs to it from here on.

        When a receiver resets a connection at once, uvloop closes its descriptor and does not mark
        the socket object as closed. That would close the same descriptor again, which may belong
        to another by then.
        """
        try:
            transport, connection = await self._loop.create_connection(
                partial(Connection, self._loop, address),
                sock=opened,
                ssl=self._tls if origin.is_tls else None,
                server_hostname=origin.host.rstrip(".") if origin.is_tls else None,
            )
        except BaseException:
            opened.detach()
            raise
        if origin.is_tls:
            progress.secured_at = time.perf_counter()
        if transport.is_closing():
            opened.detach()
        return connection

    def close(self) -> None:
        self._is_closed = True
        self._resolver.close()
        if self._timer is not None:
            self._timer.cancel()
        for kept in self._kept.values():
            for _, connection in kept:
                connection.abort()
        self._kept.clear()


def _is_proxied(info: AddressInfo) -> bool:
    return bool(webhook_settings.PROXY_URL) and is_public(ip_address(info[4][0]))


def client_context() -> ssl.SSLContext:
    """Return the context of outgoing connections: the system's authorities and EXTRA_CA_FILE's.

    Raises OSError (also as ssl.SSLError) if the file cannot be read or holds no certificate.
    """
    return _context(getattr(settings, "EXTRA_CA_FILE", ""))


@cache
def _context(extra_ca_file: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if extra_ca_file:
        context.load_verify_locations(extra_ca_file)
    context.set_alpn_protocols(["http/1.1"])
    return context
