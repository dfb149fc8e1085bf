"""Filters: what matches and what is refused when they are written."""

from typing import Any

import pytest

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
        ({"a": {"$gt": -1e20}}, "filter holds a number of more than 64 bits."),
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
