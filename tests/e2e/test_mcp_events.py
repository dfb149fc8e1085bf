"""MCP Events of a fresh instance: an official SDK subscribes, and processes are killed."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import httpx2
import orjson
import pytest
import requests
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Request
from pydantic import TypeAdapter

from recording.webhooks import SUMMARY_COMPLETED_SAMPLE
from tests.e2e.starting import READY, Instance, start
from tests.recording.mcp.events.callback import Callback, callback
from tests.recording.mcp.events.conftest import EVENT
from tests.recording.oauth.live import CSRF, Person
from tests.recording.oauth.test_real_clients import Memory, provider
from tests.running import PATIENCE_S, free_port, until

EVENTS = 4
STATELESS = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {
        "extensions": {"io.modelcontextprotocol/events": {}}
    },
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture
def instances(tmp_path, migrated_file) -> Iterator[Callable[[], Instance]]:
    """Start the instance; a second call starts it again on the same data and address."""
    data = tmp_path / "data.sqlite3"
    shutil.copy(migrated_file, data)
    url, made = f"http://127.0.0.1:{free_port()}", list[Instance]()
    with ExitStack() as stack:

        def begin() -> Instance:
            options = ("--port", url.rpartition(":")[2])
            process = stack.enter_context(start(data, *options))
            process.wait_for(READY)
            made.append(Instance(process, data, url))
            assert made[0].token  # that the first start shows
            made[0].process = process
            return made[0]

        yield begin


def kill(instance: Instance, pids: Iterable[int]) -> None:
    """Kill processes of an instance at once; the others end with them."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    instance.process.wait_until_nothing_is_left()


def ask(instance: Instance, method: str, **params: Any) -> dict[str, Any]:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": f"events/{method}",
        "params": {"name": EVENT, **params, "_meta": META},
    }
    headers = {
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {instance.token}",
        "MCP-Protocol-Version": STATELESS,
        "Mcp-Method": f"events/{method}",
    }
    answer: dict[str, Any] = requests.post(
        f"{instance.url}/mcp", json=message, headers=headers, timeout=PATIENCE_S
    ).json()
    return answer


def publish(instance: Instance, folder: Any) -> set[str]:
    """Import recordings; return their ids."""
    ids = {f"aud_killed_{number}" for number in range(EVENTS)}
    file = folder / "recording.json"
    for each in ids:
        file.write_bytes(orjson.dumps(SUMMARY_COMPLETED_SAMPLE | {"audio_id": each}))
        instance.manage("import_recording", str(file), "--account", "demo")
    return ids


def arrived(server: Callback) -> set[str]:
    return {body["data"]["audio_id"] for body in list(server.events)}


def test_an_sdk_subscribes_and_kills_lose_no_event(instances, tmp_path):
    instance = instances()
    with callback() as server, requests.Session() as session:
        person = _logged_in(instance, session)
        result = asyncio.run(_subscribe(person, server))
        assert result["id"].startswith("sub_")
        assert server.requests[0].headers["X-MCP-Subscription-Id"] == result["id"]
    with callback(is_open=False) as server:
        kill_during_the_challenge(instance, server)
        instances()
        key = {"delivery": {"url": server.url}}
        assert ask(instance, "unsubscribe", **key)["error"]["code"] == -32023
        assert ask(instance, "subscribe", delivery=server.delivery)["result"]["id"]
        server.gate.clear()  # what is sent gets no answer
        published = publish(instance, tmp_path)
        # All at once, as a machine that loses its power does.
        kill(instance, instance.process.family())
        server.gate.set()
        instances()
        until(lambda: arrived(server) >= published, "every event")
        assert len({body["eventId"] for body in server.events}) == EVENTS


def kill_during_the_challenge(instance: Instance, server: Callback) -> None:
    """Kill the supervisor alone."""

    def subscribe() -> None:
        with suppress(requests.RequestException):
            ask(instance, "subscribe", delivery=server.delivery)

    waiting = threading.Thread(target=subscribe)
    waiting.start()
    until(lambda: server.requests, "the challenge")
    kill(instance, [instance.process.pid])
    waiting.join(PATIENCE_S)
    server.gate.set()


def _logged_in(instance: Instance, session: requests.Session) -> Person:
    address = f"{instance.url}/accounts/login/"
    token = CSRF.search(session.get(address, timeout=60).text)
    assert token
    form = {"login": "demo", "password": instance.password}
    form["csrfmiddlewaretoken"] = token[1]
    session.post(address, data=form, timeout=60)
    return Person(instance.url, session)


async def _subscribe(person: Person, server: Callback) -> dict[str, Any]:
    """List, subscribe and unsubscribe as a connected application; return the subscription."""
    address, any_object = f"{person.url}/mcp", TypeAdapter(dict[str, Any])
    auth = provider(person, Memory(), "none", server=address)
    async with (
        httpx2.AsyncClient(auth=auth, trust_env=False) as http,
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
