"""Conditions of filters: combined, limited, the same for every list."""

from __future__ import annotations

import pytest

from catalog.text_checks import following
from tests.catalog.factories import AuthorFactory, CategoryFactory
from tests.catalog.test_connections import ids

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("conditions", "places"),
    [
        ({"titleStartsWith": "A"}, {4, 5, 8}),
        ({"titleStartsWith": "É"}, {2}),
        ({"titleStartsWith": "\uffee"}, {7}),
        ({"titleStartsWith": "%"}, set()),
        ({"titleStartsWith": "a\0"}, set()),
        ({"titleStartsWith": ""}, set(range(10))),
        ({"or": [{"title": "z"}, {"title": "É"}]}, {2, 3}),
        ({"and": [{"title": "a"}, {"minPageCount": 2}]}, {5, 8}),
        ({"not": {"title": "b"}}, {2, 3, 4, 5, 6, 7, 8}),
        ({"not": {}}, set()),
        ({"or": []}, set()),
        ({"and": []}, set(range(10))),
        ({"or": [{}, {"title": "nothing"}]}, set(range(10))),
        ({"not": None, "or": None, "idIn": None}, set(range(10))),
        ({"idIn": []}, set()),
        ({"idIn": ["x", "0", "-1", str(2**64)]}, set()),
        ({"authorIdIn": [-1]}, set()),
        ({"not": {"authorIdIn": [-1]}}, set(range(10))),
        ({"categoryIdIn": [-1]}, set()),
        # Books without a category have none of these.
        ({"not": {"categoryIdIn": [-1]}}, set(range(10))),
        ({"not": {"not": {"categoryId": -1}}}, set()),
    ],
)
def test_conditions_are_combined(page, books, conditions, places):
    expected = [book.pk for place, book in enumerate(books) if place in places]
    assert ids(page(filter=conditions)) == expected
    assert page(filter=conditions)["totalCount"] == len(expected)


def test_ids_choose_rows(page, books):
    chosen = [str(books[4].pk), str(books[1].pk), books[1].pk]
    assert ids(page(filter={"idIn": chosen})) == [books[1].pk, books[4].pk]
    assert len(ids(page(filter={"authorIdIn": [books[0].author_id]}))) == 10


def test_authors_and_categories_are_found_by_their_beginning(ask):
    AuthorFactory.create(first_name="Ann", last_name="Lee")
    CategoryFactory.create(name="Ähm")
    query = """query ($a: String, $c: String) {
      authors(filter: {nameStartsWith: $a}) { nodes { lastName } }
      categories(filter: {nameStartsWith: $c, not: {idIn: [0]}}) { nodes { name } } }"""
    assert ask(query, a="ANN L", c="äH")["data"] == {
        "authors": {"nodes": [{"lastName": "Lee"}]},
        "categories": {"nodes": [{"name": "Ähm"}]},
    }
    assert ask(query, a="Lee", c="m")["data"] == {
        "authors": {"nodes": []},
        "categories": {"nodes": []},
    }


@pytest.mark.parametrize(
    ("prefix", "end"),
    [
        ("ab", "ac"),
        ("a\ud7ff", "a\ue000"),
        ("a\U0010ffff", "b"),
        ("\U0010ffff\U0010ffff", ""),
    ],
)
def test_the_text_behind_all_with_a_prefix(prefix, end):
    assert following(prefix) == end


def deep(depth: int, leaf: object = None):
    return leaf if not depth else {"not": deep(depth - 1, leaf or {})}


@pytest.mark.parametrize(
    ("conditions", "limit"),
    [
        (deep(10), "filter depth"),
        (deep(200), "nesting of variables"),
        ({"or": [{"title": "a"}] * 50}, "filter conditions"),
        ({"idIn": ["1"] * 600, "or": [{"authorIdIn": [1] * 401}]}, "filter values"),
    ],
)
def test_a_filter_is_limited(ask, refused, conditions, limit):
    query = "query ($f: BookFilter) { books(filter: $f) { totalCount } }"
    assert refused(query, f=conditions)["limit"] == limit


def test_a_filter_at_its_limits_is_answered(page, books):
    every = {"or": [{"minPageCount": 0}] * 49}
    assert len(ids(page(filter=every))) == 10
    assert ids(page(filter=deep(9))) == []
    assert ids(page(filter={"idIn": [str(books[0].pk)] * 1_000})) == [books[0].pk]
