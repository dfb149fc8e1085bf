"""POSTs to servers that the operator names: their answers are read in parts.

No cookies, no redirects, no credentials or proxies from the environment. Unlike webhooks, requests
may go to private addresses.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping

from webhooks_core.network import proxy
from webhooks_core.network.addresses import AllowedNetworks
from webhooks_core.network.connection import Connection, Origin, Target, target_of
from webhooks_core.network.errors import NotHttpError
from webhooks_core.network.pool import Connections, Progress

STEP_BYTES = 64 * 1024
CODING = b"content-encoding"
GZIP = 16 + zlib.MAX_WBITS  # for zlib


class EveryNetwork(AllowedNetworks):
    def allows(self, text: str) -> bool:
        return True


class ProxyConnections(Connections):
    """Connections through a proxy, which looks up the names itself."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, defaults: Mapping[str, str], url: str
    ) -> None:
        super().__init__(EveryNetwork(), loop, defaults)
        self._url = url

    async def _open(self, origin: Origin, progress: Progress) -> Connection:
        opened = await proxy.connect(self._loop, self._url)
        if origin.is_tls:
            await proxy.open_tunnel(
                self._loop, opened, origin.host, origin.port, self._url
            )
        return await self._secured(origin, opened, "", progress)


class Answer:
    """An answer whose head is there. Whoever gets it closes it.

    Names of `headers` are lower case, and of a repeated one the last counts. A packed body is
    unpacked in steps of STEP_BYTES.
    """

    def __init__(self, connection: Connection, connections: Connections) -> None:
        self._connection, self._connections = connection, connections
        self.status = connection.status_code or 0
        self._lines = connection.headers
        self._packed = b""
        self._decoder: zlib._Decompress | None = None
        codings = [value for name, value in self._lines if name.lower() == CODING]
        coding = codings[-1].decode("latin-1").strip().lower() if codings else ""
        self._is_packed = coding == "gzip"
        if not self._is_packed and coding not in {"", "identity"}:
            self.close()
            raise NotHttpError(f"content-encoding: {coding[:50]}")

    @property
    def headers(self) -> Mapping[str, str]:
        return {
            name.decode("latin-1").lower(): value.decode("latin-1").strip()
            for name, value in self._lines
        }

    async def read(self) -> bytes:
        """Return the next part of the body, b"" at its end. Raises OSError, NotHttpError."""
        if not self._is_packed:
            return await self._connection.read()
        while True:
            if self._packed and (part := self._unpack()):
                return part
            if not self._packed:
                self._packed = await self._connection.read()
                if not self._packed:
                    break
        if self._decoder is not None and not self._decoder.eof:
            raise NotHttpError("content-encoding: the body is cut")
        return b""

    def _unpack(self) -> bytes:
        if self._decoder is None:
            self._decoder = zlib.decompressobj(GZIP)
        try:
            part = self._decoder.decompress(self._packed, STEP_BYTES)
        except zlib.error as error:
            raise NotHttpError(f"content-encoding: {error}") from error
        self._packed = self._decoder.unconsumed_tail
        return part

    def close(self) -> None:
        """Keep the connection if the answer was read to its end, else close it."""
        self._connections.keep(self._connection)


class HttpClient:
    """Connections of one event loop. `defaults` are headers that a request may replace."""

    def __init__(self, defaults: Mapping[str, str]) -> None:
        self._loop = asyncio.get_running_loop()
        self._defaults = defaults
        # By the URL of the proxy that they go through, "" for none.
        self._connections = {"": Connections(EveryNetwork(), self._loop, defaults)}

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

        Raises OSError, NotHttpError; ValueError for a URL or header that cannot be sent.
        """
        target = target_of(url)
        if through and not target.origin.is_tls:
            target, headers = _by_proxy(target, headers, through)
        if through not in self._connections:
            self._connections[through] = ProxyConnections(
                self._loop, self._defaults, through
            )
        connections = self._connections[through]
        everybody = ("", "")  # shares the connections
        connection = await connections.post(
            target, everybody, headers, body, Progress(), connect_s=connect_s
        )
        return Answer(connection, connections)

    async def close(self) -> None:
        for connections in self._connections.values():
            connections.close()


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
