"""A client of /mcp that writes JSON-RPC by hand, and recordings to read."""

from __future__ import annotations

from itertools import count
from typing import Any

import orjson
import pytest

from recording.library import importing
from recording.webhooks import SUMMARY_COMPLETED_SAMPLE
from tests.recording.conftest import Api

# The two generations: with a handshake, and with everything in each request.
HANDSHAKE, STATELESS = "2025-11-25", "2026-07-28"
ACCEPT = "application/json, text/event-stream"
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
numbers = count(1)


class Client:
    """Sends single messages with an account's personal token."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def post(self, body: Any, **headers: str) -> Any:
        if not isinstance(body, bytes):
            body = orjson.dumps(body)
        values = {
            "Accept": ACCEPT,
            "Authorization": f"Bearer {self.api.token}",
            "MCP-Protocol-Version": HANDSHAKE,
        }
        values |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.api.client.post(
            "/mcp",
            body,
            content_type=values.pop("Content-Type", "application/json"),
            headers=values,
        )

    def request(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Return the answer to a request, with `result` or `error`."""
        body = {"jsonrpc": "2.0", "id": next(numbers), "method": method}
        response = self.post(body | ({} if params is None else {"params": params}))
        assert response.status_code == 200, response.content
        answer = response.json()
        assert answer["id"] == body["id"]
        return answer

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return a tool's structured result."""
        result = self.result(tool, **arguments)
        assert not result["isError"], result
        content: dict[str, Any] = result["structuredContent"]
        assert orjson.loads(result["content"][0]["text"]) == content
        return content

    def refusal(self, tool: str, **arguments: Any) -> str:
        """Return the text of a tool's error."""
        result = self.result(tool, **arguments)
        assert result["isError"], result
        text: str = result["content"][0]["text"]
        assert "Traceback" not in text
        return text

    def result(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result: dict[str, Any] = self.request(
            "tools/call", {"name": tool, "arguments": arguments}
        )["result"]
        return result


def store(api: Api, **changes: Any) -> str:
    """Import a recording of the account; return its id."""
    document = SUMMARY_COMPLETED_SAMPLE | {"audio_id": f"aud_{next(numbers)}"} | changes
    importing.import_recording(account=api.user, raw=orjson.dumps(document))
    return str(document["audio_id"])


@pytest.fixture
def mcp(api) -> Client:
    return Client(api)
