"""What a caller learns of a failure, what is counted, and where a call runs."""

from __future__ import annotations

import threading

import pytest
from asgiref.sync import async_to_sync
from django.db import OperationalError
from django.test import AsyncClient

from recording.library import reading
from recording.mcp.metrics import tool_calls
from tests.recording.mcp.conftest import ACCEPT


def count(tool, outcome):
    return tool_calls.labels(tool, outcome)._value.get()


@pytest.mark.parametrize(
    ("error", "text", "outcome"),
    [
        (RuntimeError("secret"), "Error executing tool list_recordings", "failed"),
        (
            OperationalError("secret"),
            "A required service is temporarily unavailable.",
            "refused",
        ),
    ],
)
def test_a_failure_tells_no_details(mcp, monkeypatch, error, text, outcome):
    def fail(account, **filters):
        raise error

    monkeypatch.setattr(reading, "page", fail)
    before = count("list_recordings", outcome)
    assert mcp.refusal("list_recordings") == text
    assert count("list_recordings", outcome) == before + 1


@pytest.mark.parametrize(
    ("tool", "label", "outcome"),
    [
        ("list_recordings", "list_recordings", "ok"),
        ("get_recording", "get_recording", "refused"),
        ("x" * 1000, "unknown", "refused"),
    ],
)
def test_calls_are_counted_under_names_of_ours(mcp, tool, label, outcome):
    before = count(label, outcome)
    mcp.result(tool)
    assert count(label, outcome) == before + 1


def test_a_resource_tells_no_details_of_a_failure(mcp, monkeypatch):
    def fail(account, audio_id):
        raise RuntimeError("secret")

    monkeypatch.setattr(reading, "find", fail)
    error = mcp.request("resources/read", {"uri": "recording://x"})["error"]
    assert "secret" not in error["message"]


def test_no_thread_is_left_of_a_request(mcp):
    mcp.call("list_recordings")
    before = threading.active_count()
    for _ in range(10):
        mcp.call("list_recordings")
    # The last one may still be ending.
    assert threading.active_count() < before + 5


def test_djangos_own_asgi_handler_serves_it_too(mcp):
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "list_recordings", "arguments": {}},
    }
    headers = {"Accept": ACCEPT, "Authorization": f"Bearer {mcp.api.token}"}

    async def send():
        return await AsyncClient().post(
            "/mcp", body, "application/json", headers=headers
        )

    response = async_to_sync(send)()
    assert response.json()["result"]["structuredContent"]["recordings"] == []
