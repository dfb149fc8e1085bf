"""A client that calls the methods of MCP Events by raw requests of protocol 2026-07-28."""

from collections.abc import Iterator
from typing import Any

import pytest

from recording.mcp.events import challenges
from tests.recording.conftest import Api
from tests.recording.mcp.conftest import META, STATELESS, Client, numbers
from tests.recording.mcp.events.callback import Callback, callback
from tests.running import PATIENCE_S

EVENT = "summary.completed"
EXTENSION = "io.modelcontextprotocol/events"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


class EventsClient(Client):
    """Declares the extension unless it `is_draft`, as assistants are."""

    def __init__(self, api: Api, *, is_draft: bool = False) -> None:
        super().__init__(api)
        extensions: dict[str, Any] = {} if is_draft else {EXTENSION: {}}
        self.meta = META | {CAPABILITIES: {"extensions": extensions}}

    def message(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        params = params | {"_meta": self.meta}
        return {
            "jsonrpc": "2.0",
            "id": next(numbers),
            "method": method,
            "params": params,
        }

    def send(self, method: str, **params: Any) -> Any:
        headers = {"MCP_Protocol_Version": STATELESS, "Mcp_Method": method}
        return self.post(self.message(method, params), **headers)

    def do(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the result of a method."""
        response = self.send(f"events/{method}", **params)
        assert response.status_code == 200, response.content
        result: dict[str, Any] = response.json()["result"]
        result.pop("_meta", None)  # the package names the server there
        return result

    def refused(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the error of a method."""
        error: dict[str, Any] = self.send(f"events/{method}", **params).json()["error"]
        return error


@pytest.fixture(autouse=True)
def patient(monkeypatch) -> None:
    """Give receivers the time that a busy machine needs."""
    monkeypatch.setattr(challenges, "ANSWER_S", PATIENCE_S)


@pytest.fixture
def events(api) -> EventsClient:
    return EventsClient(api)


@pytest.fixture
def server() -> Iterator[Callback]:
    with callback() as server:
        yield server


@pytest.fixture
def subscribed(events, server) -> Any:
    """Subscribe the server; return the answer."""
    return subscribe(events, server)


def subscribe(events, server, **params):
    return events.do("subscribe", name=EVENT, **{"delivery": server.delivery} | params)


def refused(events, server, **params):
    params = {"name": EVENT, "delivery": server.delivery} | params
    return events.refused("subscribe", **params)
