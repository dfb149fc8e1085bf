"""Filters: what matches, what is refused when they are written, and what an event failed."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhooks_core import filters
from webhooks_core.filters import FilterError

EVENT = {
    "type": "order.created",
    "data": {
        "amount": 12.5,
        "count": 3,
        "big": 2**60,
        "paid": True,
        "note": None,
        "name": "Zoë",
        "tags": ["gift", "new", 7],
        "address": {"city": "Oslo", "zip": "0150"},
        "lines": [{"sku": "a"}],
        "empty": [],
    },
}
DATA = {
    "equal text": ({"name": "Zoë"}, True),
    "other text": ({"name": "zoë"}, False),
    "equal numbers of other forms": ({"count": 3.0, "amount": 12.5}, True),
    "a number is no text": ({"count": "3"}, False),
    "true is not 1": ({"paid": 1}, False),
    "1 is not true": ({"count": {"$in": [True]}}, False),
    "true is true": ({"paid": True}, True),
    "null": ({"note": None}, True),
    "an array": ({"tags": ["gift", "new", 7]}, True),
    "an item of an array": ({"tags": "gift"}, False),
    "null is not absent": ({"nothing": None}, False),
    "a nested object": ({"address": {"city": "Oslo"}}, True),
    "a member of a text": ({"name": {"x": 1}}, False),
    "$eq": ({"count": {"$eq": 3}}, True),
    "$eq of an array": ({"lines": {"$eq": [{"sku": "a"}]}}, True),
    "$eq of a longer array": ({"tags": {"$eq": ["gift", "new"]}}, False),
    "$eq of an item": ({"tags": {"$eq": "gift"}}, False),
    "$eq of an object": ({"address": {"$eq": {"zip": "0150", "city": "Oslo"}}}, True),
    "$eq of a smaller object": ({"address": {"$eq": {"city": "Oslo"}}}, False),
    "$neq": ({"count": {"$neq": 4}}, True),
    "$neq of what is absent": ({"nothing": {"$neq": 4}}, True),
    "$gt": ({"amount": {"$gt": 12}}, True),
    "$gt of the same": ({"amount": {"$gt": 12.5}}, False),
    "$gte of the same": ({"amount": {"$gte": 12.5}}, True),
    "$lt and $gt": ({"amount": {"$lt": 13, "$gt": 12}}, True),
    "$lte": ({"amount": {"$lte": 12}}, False),
    "$gt of large integers": ({"big": {"$gt": 2**60 - 1}}, True),
    "$gt of a text": ({"name": {"$gt": "Za"}}, True),
    "$gt by code point": ({"name": {"$lt": "a"}}, True),
    "$gt of another type": ({"name": {"$gt": 1}}, False),
    "$gt of a boolean": ({"paid": {"$gt": 0}}, False),
    "$lt of what is absent": ({"nothing": {"$lt": 1}}, False),
    "$in": ({"name": {"$in": ["x", "Zoë"]}}, True),
    "$in of null": ({"note": {"$in": [None]}}, True),
    "$in of an array": ({"tags": {"$in": ["gift"]}}, False),
    "$in of what is absent": ({"nothing": {"$in": [None]}}, False),
    "$exist": ({"note": {"$exist": True}}, True),
    "$exist of what is absent": ({"nothing": {"$exist": True}}, False),
    "$exist false": ({"nothing": {"$exist": False}}, True),
    "$exist within what is absent": ({"nothing": {"deep": {"$exist": False}}}, True),
    "$or": ({"$or": [{"count": 4}, {"count": 3}]}, True),
    "$or of a value": ({"count": {"$or": [1, {"$gt": 2}]}}, True),
    "$or of nothing that holds": ({"count": {"$or": [1, 2]}}, False),
    "$and": ({"count": {"$and": [{"$gt": 1}, {"$lt": 3}]}}, False),
    "$not": ({"count": {"$not": {"$gt": 5}}}, True),
    "$not of what is absent": ({"nothing": {"$not": {"$gt": 5}}}, True),
    "$not of a value": ({"name": {"$not": "Zoë"}}, False),
    "members and an operator": ({"address": {"$exist": True, "city": "Oslo"}}, True),
    "nothing": ({}, True),
}


@pytest.mark.parametrize(("source", "expected"), DATA.values(), ids=DATA)
def test_what_matches(source, expected):
    assert filters.compiled({"data": source})(EVENT) is expected
    assert matches_again({"data": source}, EVENT) is expected


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "filter must be an object."),
        ("x", "filter must be an object."),
        ({"a": {"$regex": "x"}}, "filter.a.$regex is no operator; known are $eq, $neq"),
        ({"$Or": []}, "filter.$Or is no operator"),
        (
            {"$or": {}},
            "filter.$or must be an array of at least one condition.",
        ),
        ({"a": {"$and": []}}, "filter.a.$and must be an array of at least one"),
        ({"a": {"$or": [{"$gt": None}]}}, "filter.a.$or[0].$gt must be a number or a"),
        ({"a": {"$gt": True}}, "filter.a.$gt must be a number or a string."),
        ({"a": {"$in": "x"}}, "filter.a.$in must be an array of strings, numbers"),
        ({"a": {"$in": [[]]}}, "filter.a.$in must be an array of strings, numbers"),
        ({"a": {"$contains": "x"}}, "filter.a.$contains is no operator; known are"),
        ({"a": {"$exist": "true"}}, "filter.a.$exist must be true or false."),
        ({"a": "\0"}, "filter must not hold NUL."),
        ({"\0": 1}, "filter must not hold NUL."),
        ({str(n): 1 for n in range(100)}, "filter has more than 100 parts."),
        ({"a": {"$in": ["x"] * 99}}, "filter has more than 100 parts."),
        ({"a": "x" * 16_384}, "filter is over 16384 bytes."),
    ],
)
def test_what_is_refused_when_it_is_written(source, message):
    with pytest.raises(FilterError) as caught:
        filters.compiled(source)
    assert str(caught.value).startswith(message)


def test_the_depth_is_limited():
    source: Any = 1
    for _ in range(filters.MAX_DEPTH):
        source = {"a": source}
    filters.compiled(source)
    with pytest.raises(FilterError, match="nested deeper than 8 levels"):
        filters.compiled({"a": source})


def test_a_stored_filter_is_compiled_once():
    assert filters.from_json('{"a": 1}') is filters.from_json('{"a": 1}')


# ── An independent evaluator, written from the sentences of the documentation ──────────


class Nothing:
    """What is absent."""


def tagged(value: Any) -> str:
    """Return canonical JSON whose numbers are floats: equal for equal JSON."""

    def plain(part: Any) -> Any:
        if isinstance(part, dict):
            return {"o": [[name, plain(part[name])] for name in sorted(part)]}
        if isinstance(part, list):
            return [plain(item) for item in part]
        if isinstance(part, int | float) and not isinstance(part, bool):
            return {"n": float(part)}
        return part

    return orjson.dumps(plain(value)).decode()


def matches_again(condition: Any, value: Any) -> bool:
    if isinstance(condition, dict):
        return all(member(name, operand, value) for name, operand in condition.items())
    return value is not Nothing and tagged(value) == tagged(condition)


def member(name: str, operand: Any, value: Any) -> bool:  # noqa: PLR0911 - a table
    match name:
        case "$and":
            return not [1 for each in operand if not matches_again(each, value)]
        case "$or":
            return bool([1 for each in operand if matches_again(each, value)])
        case "$not":
            return not matches_again(operand, value)
        case "$exist":
            return bool(operand) is (value is not Nothing)
        case "$neq":
            return not member("$eq", operand, value)
    if not name.startswith("$"):
        inner = value.get(name, Nothing) if isinstance(value, dict) else Nothing
        return matches_again(operand, inner)
    return value is not Nothing and compared(name, operand, value)


def compared(name: str, operand: Any, value: Any) -> bool:
    is_text = isinstance(value, str) and isinstance(operand, str)
    match name:
        case "$eq":
            return tagged(value) == tagged(operand)
        case "$in":
            return tagged(value) in [tagged(each) for each in operand]
    numbers = [
        isinstance(each, int | float) and not isinstance(each, bool)
        for each in (value, operand)
    ]
    if not (is_text or all(numbers)):
        return False
    left, right = (
        ([ord(c) for c in value], [ord(c) for c in operand])
        if is_text
        else (value, operand)
    )
    return {
        "$gt": left > right,
        "$gte": left >= right,
        "$lt": left < right,
        "$lte": left <= right,
    }[name]


NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.sampled_from(
    [None, True, False, 0, 1, 1.0, 1.5, -2, "", "a", "ab", "ba", "é"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
    ),
    max_leaves=8,
)
EVENTS = st.dictionaries(NAMES, VALUES, max_size=3)
ORDERED = st.sampled_from([0, 1, 1.5, -2, "", "a", "ab", "é"])
COMPARISONS = st.one_of(
    st.tuples(st.sampled_from(["$eq", "$neq"]), VALUES),
    st.tuples(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), ORDERED),
    st.tuples(st.sampled_from(["$in"]), st.lists(SCALARS, max_size=3)),
    st.tuples(st.just("$exist"), st.booleans()),
)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    logical = st.tuples(
        st.sampled_from(["$and", "$or"]), st.lists(inner, min_size=1, max_size=3)
    )
    members = st.tuples(NAMES, inner)
    part = COMPARISONS | logical | members | st.tuples(st.just("$not"), inner)
    return st.lists(part, max_size=3).map(dict)


CONDITIONS = st.recursive(
    SCALARS | st.lists(SCALARS, max_size=2), objects, max_leaves=8
)
FILTERS = objects(CONDITIONS)


@given(FILTERS, EVENTS)
def test_filters_match_what_an_independent_evaluator_matches(source, event):
    try:
        compiled = filters.compiled(source)
    except FilterError as error:
        assert "deeper" in str(error) or "more than" in str(error)  # noqa: PT017
        return
    stored = filters.from_json(orjson.dumps(source).decode())
    expected = matches_again(source, event)
    assert compiled(event) is stored(event) is expected
