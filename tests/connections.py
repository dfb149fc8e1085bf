"""Connections between tests and what they test, and what the kernel knows of them."""

import socket
import sys
from contextlib import suppress
from pathlib import Path

from tests.running import PATIENCE_S


def connected(url: str) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), PATIENCE_S)


def read(client: socket.socket) -> bytes:
    """Return all that arrives until the connection ends."""
    data = b""
    with suppress(ConnectionError):
        while part := client.recv(100_000):
            data += part
    return data


def has_read(connection: socket.socket) -> bool:
    """Return True if the other end of a connection on this machine has read what it received."""
    ends = [connection.getpeername(), connection.getsockname()]
    name = " ".join(
        f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"
        for host, port in ends
    )
    for line in Path("/proc/net/tcp").read_text().splitlines():
        if name in line:
            return line.split()[4].endswith(":00000000")
    return True
