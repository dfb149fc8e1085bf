"""A site that publishes a client's metadata document, over TLS on loopback."""

import json
import socket
from typing import Any

from tests.webhooks_core.network.hostile import Hostile, receive

HOST = "client.example"


class Site(Hostile):
    """Answers each request with what was published last."""

    @property
    def client_id(self) -> str:
        return f"https://{HOST}:{self.port}/mcp/client.json"

    def publish(self, **changes: Any) -> None:
        document = {
            "client_id": self.client_id,
            "client_name": "Notebook",
            "redirect_uris": ["http://127.0.0.1/callback"],
        } | changes
        self.answer(json.dumps(document).encode())

    def answer(self, body: bytes, *, status: str = "200 OK") -> None:
        head = [f"HTTP/1.1 {status}", "Content-Type: application/json"]
        head += [f"Content-Length: {len(body)}", "Connection: close"]
        data = "\r\n".join([*head, "", ""]).encode() + body

        def behave(connection: socket.socket, _: Hostile) -> None:
            receive(connection)
            connection.sendall(data)

        self.behave = behave


def assert_refused(response: Any) -> None:
    assert response.status_code == 400
    text = "The document that describes the application cannot be fetched"
    assert text in response.content.decode()
    assert "Location" not in response
