"""The size of JSON is known without reading or writing it."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhooks_core.web.json_values import check_values, is_longer, without_texts

TEXT = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5)
    ),
    max_leaves=10,
)


@given(JSON)
def test_nothing_is_taken_for_longer_than_it_is(value: Any):
    assert not is_longer(value, len(orjson.dumps(value)))


@pytest.mark.parametrize("value", [[1] * 101, {"a" * 101: 1}, "x" * 101, [["x" * 98]]])
def test_what_has_more_members_or_characters_is_longer(value):
    assert is_longer(value, 100)


def test_a_long_list_is_not_walked():
    class Members(list[Any]):
        def __iter__(self) -> Any:
            raise AssertionError

    assert is_longer({"a": Members([1] * 1000)}, 100)


@given(st.lists(st.text(alphabet='\\",[{a', max_size=10), max_size=10))
def test_texts_count_nothing(texts: list[str]):
    raw = orjson.dumps(texts)
    assert without_texts(raw) == b"[" + b"," * (len(texts) - 1) + b"]"
    check_values(raw, len(texts) or 1)
