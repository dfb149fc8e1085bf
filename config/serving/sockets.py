"""The listening socket of the web server, opened before anything else starts."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import socket
from dataclasses import dataclass, field
from typing import Any

from config.environment import is_loopback

BACKLOG = 2048


class ListenError(Exception):
    """No socket can listen on this address; the message says why and what to do."""


def port_number(text: str) -> int:
    """Return the port that a text names. Raises ListenError."""
    if text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= 65535:
        return int(text)
    raise ListenError(f"--port: {text!r} is not a port: give a number from 1 to 65535.")


def origin(host: str, port: int) -> str:
    """Return the http origin of a listener, an IPv6 address in brackets."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def check_host(host: str, *, loopback_only: bool) -> None:
    """Raise ListenError if only loopback is allowed and other machines could reach the host."""
    if loopback_only and not is_loopback(host):
        raise ListenError(
            f"--host: {host!r} is not a loopback address: a local instance serves this "
            "machine only; set ENVIRONMENT=production to serve other machines."
        )


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises ListenError, as when the port is taken."""
    family, address = _resolve(host, port)
    listener = _above_standard_streams(socket.socket(family, socket.SOCK_STREAM))
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # Now, not when the server starts: until one listens, two processes can bind one port.
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ListenError(_reason(error, host, port)) from error
    return listener


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ListenError(f"--host: {host!r} is not a known address.") from error
    family, _, _, _, address = min(entries, key=lambda row: row[0] != socket.AF_INET)
    return family, address


def _above_standard_streams(listener: socket.socket) -> socket.socket:
    """Move a socket from descriptors 0 to 2, which it may get when those are closed."""
    number = fcntl.fcntl(listener.fileno(), fcntl.F_DUPFD_CLOEXEC, 3)
    listener.close()
    return socket.socket(fileno=number)


def _reason(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} on {host} is in use: end what listens there, "
            "or choose another one with --port."
        )
    return f"cannot listen on {host} port {port}: {os.strerror(error.errno or 0)}."


@dataclass(slots=True)
class Probe:
    """Checks without blocking whether a server answers: call it until it returns True."""

    family: int
    address: Any
    request: bytes
    _client: socket.socket | None = field(default=None, init=False)

    def __call__(self) -> bool:
        if self._client is None:
            self._client = socket.socket(self.family, socket.SOCK_STREAM)
            self._client.connect(self.address)
            self._client.sendall(self.request)
        if not select.select([self._client], [], [], 0)[0]:
            return False
        with self._client as client, contextlib.suppress(ConnectionError):
            self._client = None
            return client.recv(5) == b"HTTP/"
        return False
