"""Connections to receivers: opened to allowed addresses only, and kept for a while.

Owners do not share connections. Whatever a receiver does to one of them after its response (it stops
reading, or sends something more) concerns the next request of the same owner only.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Sequence
from functools import partial
from ipaddress import ip_address

from aiohappyeyeballs import start_connection

from webhooks_core.conf import webhook_settings
from webhooks_core.network import proxy
from webhooks_core.network.addresses import (
    AllowedNetworks,
    BlockedAddressError,
    is_public,
)
from webhooks_core.network.certificates import client_context
from webhooks_core.network.connection import Connection
from webhooks_core.network.errors import ProxyRefusedError
from webhooks_core.network.kept import KeptConnections
from webhooks_core.network.request_head import Origin
from webhooks_core.network.resolver import (
    AddressInfo,
    GuardedResolver,
    check_address,
    guarded_socket,
)

KEEP_ALIVE_S = 15.0
# How long an address may take to connect until the next one of its name is tried too.
NEXT_ADDRESS_S = 0.25
# Where requests go, and the owner (profile, name) that they are made for.
Route = tuple[Origin, tuple[str, str]]


class Progress:
    """How far an attempt got; times are those of `time.perf_counter`, 0 if it did not get there.

    `is_connected` is true as soon as there is TCP, before TLS. `awaits_proxy` is true until the
    egress proxy has accepted a connection. `opened` has the sockets of new connections, with their
    addresses; a kept connection has none. `request_head` is what was sent on `connection`, the
    last one.
    """

    __slots__ = (
        "awaits_proxy",
        "connected_at",
        "connection",
        "first_byte_at",
        "is_connected",
        "is_repeated",
        "opened",
        "request_head",
        "secured_at",
    )

    def __init__(self) -> None:
        self.is_connected = self.is_repeated = self.awaits_proxy = False
        self.connected_at = self.secured_at = self.first_byte_at = 0.0
        self.opened: dict[socket.socket, AddressInfo] = {}
        self.request_head = b""
        self.connection: Connection | None = None

    def detach_sockets(self) -> None:
        """Detach sockets whose connection has failed: libuv has closed their descriptors.

        When a receiver resets a connection at once, uvloop does not mark the socket object as
        closed. It would close the same descriptor again, which may belong to another by then.
        """
        for opened in self.opened:
            opened.detach()


class Connections:
    """The connections of one event loop within some networks."""

    def __init__(
        self, networks: AllowedNetworks, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._networks = networks
        self._loop = loop
        self._resolver = GuardedResolver(networks)
        self._tls = client_context()
        self._kept = KeptConnections[Route, Connection](
            loop, KEEP_ALIVE_S, self._resolver.forget
        )

    def kept(self, route: Route) -> Connection | None:
        """Return a kept connection, which is then no longer kept; None if there is none."""
        if connection := self._kept.take(route):
            connection.begin()
        return connection

    def keep(self, route: Route, connection: Connection) -> None:
        """Keep a connection for the next request, or close it if it cannot serve one."""
        self._kept.keep(route, connection)

    async def open(self, origin: Origin, progress: Progress) -> Connection:
        """Connect to one of the addresses of an origin. Raises OSError."""
        self._kept.start_timer()  # for the names that are looked up now
        infos = list(await self._resolver.resolve(origin.host, origin.port))
        try:
            while True:
                opened = await self._connected(infos, progress)
                try:
                    return await self._secured(origin, opened, progress)
                except OSError:
                    progress.detach_sockets()
                    infos.remove(progress.opened[opened])
                    if not infos:
                        raise
        except BaseException:
            progress.detach_sockets()
            raise

    async def can_connect(self, origin: Origin) -> bool:
        """Return True if an address of an origin accepts a connection. Raises OSError."""
        infos = await self._resolver.resolve(origin.host, origin.port)
        (await self._connected(infos, Progress())).close()
        return True

    async def _connected(
        self, infos: Sequence[AddressInfo], progress: Progress
    ) -> socket.socket:
        """Return a socket that is connected to the first address that accepts.

        With an egress proxy none of them is public, or all are reached through it.
        """
        direct = [info for info in infos if not _is_proxied(info)]
        if not direct:
            opened = await self._tunnelled(infos, progress)
        else:
            opened = await start_connection(
                direct,
                happy_eyeballs_delay=NEXT_ADDRESS_S,
                loop=self._loop,
                socket_factory=partial(self._socket, progress),
            )
        progress.is_connected, progress.connected_at = True, time.perf_counter()
        return opened

    async def _tunnelled(
        self, infos: Sequence[AddressInfo], progress: Progress
    ) -> socket.socket:
        """Return a tunnel to the first address that the egress proxy connects to."""
        refusal: Exception = BlockedAddressError()
        # IPv4 first: fewer proxies have IPv6, and one that drops it would use up the deadline.
        for info in sorted(infos, key=lambda info: info[0] != socket.AF_INET):
            check_address(self._networks, info)
            progress.awaits_proxy = True
            opened = await proxy.connect(self._loop)
            progress.awaits_proxy = False
            progress.opened[opened] = info
            try:
                login = proxy.parse(webhook_settings.PROXY_URL).authorization
                await proxy.open_tunnel(self._loop, opened, *info[4], login)
            except ProxyRefusedError as error:
                opened.close()
                refusal = error
            except BaseException:
                opened.close()
                raise
            else:
                return opened
        raise refusal

    def _socket(self, progress: Progress, info: AddressInfo) -> socket.socket:
        opened = guarded_socket(self._networks, info)
        progress.opened[opened] = info
        return opened

    async def _secured(
        self, origin: Origin, opened: socket.socket, progress: Progress
    ) -> Connection:
        transport, connection = await self._loop.create_connection(
            partial(Connection, self._loop, str(progress.opened[opened][4][0])),
            sock=opened,
            ssl=self._tls if origin.is_tls else None,
            server_hostname=origin.host.rstrip(".") if origin.is_tls else None,
        )
        if origin.is_tls:
            progress.secured_at = time.perf_counter()
        if transport.is_closing():
            progress.detach_sockets()
        return connection

    def close(self) -> None:
        self._resolver.close()
        self._kept.close()


def _is_proxied(info: AddressInfo) -> bool:
    return bool(webhook_settings.PROXY_URL) and is_public(ip_address(info[4][0]))
