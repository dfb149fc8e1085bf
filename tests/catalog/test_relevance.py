"""The order RELEVANCE: how well a name fits the text that a filter seeks."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.models import Author, Book
from tests.catalog.factories import AuthorFactory, BookFactory, CategoryFactory
from tests.catalog.reference import relevance
from tests.catalog.test_connections import NESTED, ids

pytestmark = pytest.mark.django_db


def test_books_come_by_how_well_their_names_fit(ask):
    names = ["Homme", "The Emma", "emma's", "EMMA", "Gemma", "Emmaus", "Jean-Emma"]
    for name in names:
        BookFactory.create(name=name)
    query = """query ($t: String) { books(orderBy: RELEVANCE, filter: {title: $t}) {
      nodes { name } } }"""
    found = ask(query, t="Emma")["data"]["books"]["nodes"]
    assert [book["name"] for book in found] == [
        *("EMMA", "emma's", "Emmaus"),
        *("Jean-Emma", "The Emma"),
        "Gemma",
    ]


TEXTS = st.text("aAbß .-'(\"%_", max_size=5)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    names=st.lists(TEXTS.filter(str.strip), min_size=1, max_size=12),
    part=TEXTS,
    size=st.integers(1, 4),
    then=st.sampled_from([[], ["PAGE_COUNT_DESC"], ["ID_DESC"]]),
)
def test_pages_agree_with_python_in_both_directions(ask, page, names, part, size, then):
    Book.objects.all().delete()
    author, category = AuthorFactory.create(), CategoryFactory.create()
    books = [
        BookFactory.create(
            name=name, author=author, category=category, page_count=place % 2
        )
        for place, name in enumerate(names)
    ]
    books.sort(key=lambda book: book.pk, reverse=bool(then))
    if then == ["PAGE_COUNT_DESC"]:
        books.sort(key=lambda book: -book.page_count)
    books.sort(key=lambda book: book.name.casefold())
    books.sort(key=lambda book: relevance(book, part))
    expected = [book.pk for book in books if part.casefold() in book.name.casefold()]
    asked = {"order": "RELEVANCE", "thenBy": then, "filter": {"title": part}}
    for ways in (
        ("first", "after", "end", "Next"),
        ("last", "before", "start", "Previous"),
    ):
        number, bound, side, more = ways
        walked: list[list[int]] = []
        cursor = None
        while True:
            answer = page(**asked, **{number: size, bound: cursor})
            walked.append(ids(answer))
            cursor = answer["pageInfo"][f"{side}Cursor"]
            if not answer["pageInfo"][f"has{more}Page"]:
                break
        ordered = walked if number == "first" else walked[::-1]
        assert [*chain.from_iterable(ordered)] == expected
    asked = {"order": "RELEVANCE", "then": then, "filter": {"title": part}}
    for window in ({"first": size}, {"last": size}):
        nested = ask(NESTED, **asked, **window)["data"]["getAllCategories"][-1]
        own = expected[:size] if "first" in window else expected[-size:]
        assert ids(nested["booksPage"]) == own
        assert nested["booksPage"]["totalCount"] == len(expected)


def test_authors_come_by_how_well_both_names_fit(ask):
    people = [("Bo", "Annan"), ("Joanna", "Bo"), ("Ann", "Z"), ("Ann", "B")]
    for first, last in people:
        AuthorFactory.create(first_name=first, last_name=last)
    query = """{ authors(orderBy: RELEVANCE, filter: {name: "ann"}) {
      nodes { lastName } } }"""
    found = ask(query)["data"]["authors"]["nodes"]
    assert [author["lastName"] for author in found] == ["B", "Z", "Annan", "Bo"]
    assert Author.objects.count() == len(found)


@pytest.mark.parametrize(
    "conditions", [None, {}, {"title": None}, {"and": [{"title": "a"}]}]
)
@pytest.mark.parametrize(
    "orders", ["orderBy: RELEVANCE", "orderBy: NAME_ASC, thenBy: RELEVANCE"]
)
def test_without_a_text_there_is_no_relevance(ask, conditions, orders):
    query = f"query ($f: BookFilter) {{ books({orders}, filter: $f) {{ totalCount }} }}"
    [error] = ask(query, f=conditions)["errors"]
    assert error["message"] == "RELEVANCE needs title in filter."
    assert error["extensions"] == {"code": "BAD_USER_INPUT", "field": "filter"}


@pytest.mark.parametrize("part", ["", "\0", "a" * 2_000, "nothing"])
def test_any_text_has_a_relevance(ask, page, books, part):
    asked = {"order": "RELEVANCE", "filter": {"title": part}, "first": 100}
    by_name = page(**{**asked, "order": "NAME_IGNORING_CASE_ASC"})
    assert ids(page(**asked)) == ids(by_name)
    CategoryFactory.create()
    nested = ask(NESTED, **asked)["data"]["getAllCategories"]
    assert nested[0]["booksPage"]["nodes"] == []


def test_relevance_takes_no_further_query(ask, books, django_assert_num_queries):
    CategoryFactory.create()
    orders = ("orderBy: NAME_ASC", "orderBy: RELEVANCE")
    page = '(%s, filter: {title: "a"}, first: 2) { nodes { name } }'
    for order in orders:
        with django_assert_num_queries(5):
            ask(
                f"{{ books{page % order} getAllAuthors {{ booksPage{page % order} }} }}"
            )
