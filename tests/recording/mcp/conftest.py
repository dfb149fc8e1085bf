"""A client of /mcp that writes JSON-RPC by hand, and recordings to read."""

import asyncio
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import orjson
import pytest
from asgiref.sync import async_to_sync, sync_to_async

from recording import token_memory
from recording.mcp.asgi import MCPApplication
from recording.webhooks import SUMMARY_COMPLETED_SAMPLE
from tests.recording.conftest import Api, imported

# The two generations: with a handshake, and with everything in each request.
HANDSHAKE, STATELESS = "2025-11-25", "2026-07-28"
ACCEPT = "application/json, text/event-stream"
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
numbers = count(1)


@dataclass(frozen=True)
class Response:
    """What the application has sent."""

    status_code: int
    headers: Mapping[str, str]  # by names in lower case
    content: bytes

    def json(self) -> Any:
        return orjson.loads(self.content)

    def __getitem__(self, name: str) -> str:
        return self.headers[name.lower()]


def post(body: bytes, headers: Mapping[str, str]) -> Response:
    """Send one POST to a new application, whose database work runs in this thread."""

    async def answer() -> Response:
        application = MCPApplication(lambda function: sync_to_async(function)())
        return await respond(application, body, headers)

    return async_to_sync(answer)()


async def respond(
    application: MCPApplication, body: bytes, headers: Mapping[str, str]
) -> Response:
    """Send one POST."""
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "query_string": b"",
        "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
    }
    messages = [{"type": "http.request", "body": body}]
    sent = list[MutableMapping[str, Any]]()

    async def receive() -> dict[str, Any]:
        return messages.pop() if messages else await asyncio.Future()

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    await application(scope, receive, send)
    start, *parts = sent
    return Response(
        start["status"],
        {name.decode(): value.decode() for name, value in start["headers"]},
        b"".join(part.get("body", b"") for part in parts),
    )


class Client:
    """Sends single messages with an account's personal token."""

    def __init__(self, api: Api) -> None:
        self.api = api

    @property
    def headers(self) -> dict[str, str]:
        return {
            "Accept": ACCEPT,
            "Authorization": f"Bearer {self.api.token}",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": HANDSHAKE,
        }

    def post(self, body: Any, **headers: str) -> Response:
        if not isinstance(body, bytes):
            body = orjson.dumps(body)
        values = self.headers | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        return post(body, values)

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
    imported(api.user, **document)
    return str(document["audio_id"])


@pytest.fixture
def mcp(api) -> Client:
    return Client(api)


@pytest.fixture(autouse=True)
def unknown_tokens() -> None:
    """Look each token up: a test gets other accounts for the same rows."""
    token_memory.forget()


def initialize(version):
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
