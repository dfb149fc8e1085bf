"""A site that publishes a client's metadata document, over TLS on loopback."""

import json
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import trustme

HOST = "client.example"
Behaviour = Callable[[socket.socket], None]


@dataclass
class Site:
    """Answers each request with `behave`, and counts the connections."""

    server: socket.socket
    tls: ssl.SSLContext
    connections: int = 0
    behave: Behaviour = lambda _: None
    requests: list[bytes] = field(default_factory=list)

    @property
    def client_id(self) -> str:
        return f"https://{HOST}:{self.server.getsockname()[1]}/mcp/client.json"

    def document(self, **changes: Any) -> dict[str, Any]:
        return {
            "client_id": self.client_id,
            "client_name": "Notebook",
            "redirect_uris": ["http://127.0.0.1/callback"],
        } | changes

    def publish(self, **changes: Any) -> None:
        self.answer(json.dumps(self.document(**changes)).encode())

    def answer(
        self,
        body: bytes,
        *headers: str,
        status: str = "200 OK",
        kind: str = "application/json",
    ) -> None:
        head = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", "Connection: close"]
        head += [f"Content-Length: {len(body)}", *headers]
        data = "\r\n".join([*head, "", ""]).encode() + body
        self.behave = lambda connection: connection.sendall(data)

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(
                target=self._serve, args=(connection,), daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            connection.settimeout(30)
            with self.tls.wrap_socket(connection, server_side=True) as secured:
                self.requests.append(secured.recv(65_536))
                with suppress(OSError):
                    self.behave(secured)


def server_side(issued: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(context)
    return context


def assert_refused(response: Any) -> None:
    assert response.status_code == 400
    text = "The document that describes the application cannot be fetched"
    assert text in response.content.decode()
    assert "Location" not in response
