"""MCP Events of a running instance: an official SDK subscribes."""

import asyncio
from typing import Any

import requests
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Request
from pydantic import TypeAdapter

from tests.e2e.starting import log_in
from tests.recording.mcp.events.callback import Callback, callback
from tests.recording.mcp.events.conftest import EVENT
from tests.recording.oauth.live import Memory, Person, patient, provider


def test_an_sdk_subscribes_and_unsubscribes(instance):
    with callback() as server, requests.Session() as session:
        log_in(session, instance.url, instance.password)
        result = asyncio.run(_subscribe(Person(instance.url, session), server))
        assert result["id"].startswith("sub_")
        assert server.requests[0].headers["X-MCP-Subscription-Id"] == result["id"]


async def _subscribe(person: Person, server: Callback) -> dict[str, Any]:
    """List, subscribe and unsubscribe as a connected application; return the subscription."""
    address, any_object = f"{person.url}/mcp", TypeAdapter(dict[str, Any])
    auth = provider(person, Memory(), "none", server=address)
    async with (
        patient(auth) as http,
        Client(streamable_http_client(address, http_client=http)) as mcp,
    ):

        async def ask(method: str, **params: Any) -> dict[str, Any]:
            request = Request[dict[str, Any], str](
                method=f"events/{method}", params=params
            )
            answer: dict[str, Any] = await mcp.session.send_request(  # type: ignore[type-var]
                request, any_object
            )
            return answer

        [item] = (await ask("list"))["events"]
        assert item["delivery"] == ["webhook"]
        key = {"name": EVENT, "arguments": {}}
        result = await ask("subscribe", **key, delivery=server.delivery)
        await ask("unsubscribe", **key, delivery={"url": server.url})
        return result
