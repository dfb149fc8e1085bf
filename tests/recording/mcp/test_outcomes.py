"""What a caller learns of a failure, and what is counted."""

from __future__ import annotations

import pytest
from django.db import OperationalError

from recording.library import reading
from recording.mcp.metrics import tool_calls


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
