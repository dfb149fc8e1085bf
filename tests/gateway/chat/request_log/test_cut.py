"""The cut of JSON: never more than the room, the newest first, no secrets."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.chat.request_log.cut import HIDDEN, Room

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
    kept = json.loads(json.dumps(room.cut(value)))
    assert len(json.dumps(kept, ensure_ascii=True)) <= 12 * most + 2000
    assert room.is_cut or kept == json.loads(json.dumps(value))


def test_the_last_items_of_a_list_are_kept_whole():
    items = [f"message {number:03} " + "x" * 88 for number in range(1000)]
    room = Room(1000)
    assert room.cut({"messages": items})["messages"][-5:] == items[-5:]
    assert room.is_cut


def test_deep_nesting_ends():
    value: Any = "deep"
    for _ in range(500):
        value = [value]
    room = Room(10_000)
    assert "deep" not in json.dumps(room.cut(value))
    assert room.is_cut


def test_secrets_are_hidden_and_files_are_recognised():
    room = Room(10_000)
    value = {
        "mcp_servers": [{"url": "https://x", "Authorization_Token": "secret"}],
        "image_url": "data:image/png;base64," + "x" * 5000,
        "source": {"type": "base64", "data": "y" * 5000},
    }
    kept = room.cut(value)
    assert kept["mcp_servers"][0]["Authorization_Token"] == HIDDEN
    assert kept["image_url"].startswith("data:image/png;base64,xxx")
    assert len(json.dumps(kept)) < 400
