"""The cut of JSON: never more than the room, never half of anything, the newest first."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.chat.request_log.shortened import HIDDEN, Room, shortened

SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=300)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner)
    ),
    max_leaves=20,
)


@settings(max_examples=30)
@given(VALUES, st.integers(0, 2000))
def test_what_is_kept_is_json_within_the_room(value: Any, most: int):
    room = Room(most)
    kept = json.loads(json.dumps(shortened(value, room)))
    # Beside the room there is at most a mark for each level, and punctuation.
    assert len(json.dumps(kept, ensure_ascii=True)) <= 12 * most + 2000
    assert room.is_cut or kept == json.loads(json.dumps(value))


def test_the_last_items_of_a_list_are_kept_whole():
    items = [f"message {number:03} " + "x" * 88 for number in range(1000)]
    kept = shortened({"messages": items}, Room(1000))["messages"]
    assert kept[-5:] == items[-5:]
    assert kept[0] == f"… [{1000 - len(kept) + 1} earlier items cut]"


def test_a_text_is_cut_with_a_mark_that_counts():
    assert shortened("a" * 10_000, Room(100)) == "a" * 100 + "… [9900 characters cut]"


def test_deep_nesting_ends_with_a_mark():
    value: Any = "deep"
    for _ in range(500):
        value = [value]
    assert "nested too deeply" in json.dumps(shortened(value, Room(10_000)))


@pytest.mark.parametrize(
    "member", [{"url": "data:image/png;base64," + "A" * 500}, {"data": "A" * 500}]
)
def test_images_and_files_are_not_kept(member: dict[str, str]):
    assert "A" * 100 not in json.dumps(shortened([member], Room(5000)))


def test_credentials_in_a_body_are_hidden():
    servers = [{"url": "https://mcp.example.com", "authorization_token": "s3cret"}]
    tool = {"server_url": "x", "headers": {"Authorization": "Bearer s3cret"}}
    kept = shortened({"mcp_servers": servers, "input": [tool]}, Room(5000))
    assert "s3cret" not in json.dumps(kept)
    assert kept["mcp_servers"][0]["authorization_token"] == HIDDEN


@pytest.mark.parametrize(
    "member",
    [
        {"authentication": {"type": "api_key", "key": "s3cret"}},
        {"embedding_dependency": {"authentication": {"access_token": "s3cret"}}},
        {"connection_string": "s3cret"},
        {"access_token": "s3cret"},
    ],
)
def test_credentials_of_azures_data_sources_are_hidden(member):
    source = {"type": "azure_search", "parameters": {"index_name": "tides", **member}}
    kept = json.dumps(shortened({"data_sources": [source]}, Room(5000)))
    assert "s3cret" not in kept
    assert "tides" in kept
