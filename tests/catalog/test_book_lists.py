from __future__ import annotations

import pytest

from catalog.books import MOST_ITEMS
from catalog.models import Book
from tests.catalog.factories import (
    AuthorFactory,
    BookFactory,
    CategoryFactory,
    number_on,
)

pytestmark = pytest.mark.django_db

FIELDS = "{ books { id name externalId pageCount author { id } category { id } } errors { index code message field } }"
ADD = f"mutation ($books: [BookInput!]!) {{ addBooks(books: $books) {FIELDS} }}"
UPSERT = (
    f"mutation ($books: [BookUpsertInput!]!) {{ upsertBooks(books: $books) {FIELDS} }}"
)
DELETE = "mutation ($ids: [ID!]!) { deleteBooks(bookIds: $ids) }"


@pytest.fixture(autouse=True)
def author(db):
    AuthorFactory.create(id=1)
    number_on()


def draft(name="Emma", **fields):
    return {"name": name, "pageCount": 474, "authorId": 1, **fields}


def keyed(key, name="Emma", **fields):
    return draft(name, externalId=key, **fields)


def stored():
    return set(Book.objects.values_list("external_id", "name"))


def test_books_are_added_in_their_order(ask):
    category = CategoryFactory.create()
    books = [draft("b", categoryId=category.pk), draft("a"), draft("a")]
    answer = ask(ADD, books=books)["data"]["addBooks"]
    assert answer["errors"] == []
    rows = list(Book.objects.order_by("pk"))
    assert [book["id"] for book in answer["books"]] == [str(row.pk) for row in rows]
    assert [row.name for row in rows] == ["b", "a", "a"]
    assert [row.name_folded for row in rows] == ["b", "a", "a"]
    assert answer["books"][0]["category"] == {"id": str(category.pk)}
    assert answer["books"][1]["category"] is None


@pytest.mark.parametrize("mutation", ["addBooks", "upsertBooks"])
def test_every_faulty_item_is_named_and_nothing_is_stored(ask, mutation):
    books = [
        draft(),
        draft(" "),
        draft(pageCount=-1),
        draft(authorId=99),
        draft(categoryId=99, authorId=2**31 - 1),
        draft("a\0b", authorId=99),
    ]
    if mutation == "upsertBooks":
        books = [{**book, "externalId": str(n)} for n, book in enumerate(books)]
    answer = ask(ADD if mutation == "addBooks" else UPSERT, books=books)
    payload = answer["data"][mutation]
    assert payload["books"] is None
    assert [
        (fault["index"], fault["code"], fault["field"]) for fault in payload["errors"]
    ] == [
        (1, "BAD_USER_INPUT", "name"),
        (2, "BAD_USER_INPUT", "pageCount"),
        (3, "NOT_FOUND", "authorId"),
        (4, "NOT_FOUND", "authorId"),
        (4, "NOT_FOUND", "categoryId"),
        (5, "BAD_USER_INPUT", "name"),
        (5, "NOT_FOUND", "authorId"),
    ]
    assert payload["errors"][0]["message"] == "name must not be blank."
    assert Book.objects.count() == 0


def test_an_upsert_replaces_every_field_of_known_books_and_adds_the_others(ask):
    known = BookFactory.create(
        external_id="b", name="Old", category=CategoryFactory.create()
    )
    BookFactory.create(name="without a key")
    answer = ask(UPSERT, books=[keyed("z", "Z"), keyed("b", "New"), keyed("a", "A")])
    books = answer["data"]["upsertBooks"]["books"]
    assert [book["externalId"] for book in books] == ["z", "b", "a"]
    assert books[1]["id"] == str(known.pk)
    assert books[1]["category"] is None
    assert stored() == {("z", "Z"), ("b", "New"), ("a", "A"), (None, "without a key")}
    again = ask(UPSERT, books=[keyed("z", "Z"), keyed("b", "New")])
    assert again["data"]["upsertBooks"]["books"] == books[:2]
    # The search index follows.
    found = ask('{ searchBooks(title: "Old") { id } }')["data"]["searchBooks"]
    assert found == []


@pytest.mark.parametrize("key", ["", "  ", "x" * 256, "a\0b"])
def test_a_bad_external_id_is_refused(ask, key):
    [fault] = ask(UPSERT, books=[keyed(key)])["data"]["upsertBooks"]["errors"]
    assert (fault["code"], fault["field"]) == ("BAD_USER_INPUT", "externalId")


def test_an_external_id_that_comes_twice_is_refused(ask):
    books = [keyed("a"), keyed("b"), keyed("a", "Other")]
    [fault] = ask(UPSERT, books=books)["data"]["upsertBooks"]["errors"]
    assert (fault["index"], fault["field"]) == (2, "externalId")
    assert Book.objects.count() == 0


def test_books_are_deleted_and_absent_ones_are_false(ask):
    first, second, third = BookFactory.create_batch(3)
    ids = [str(second.pk), "999999", "x", str(first.pk), str(second.pk)]
    assert ask(DELETE, ids=ids)["data"]["deleteBooks"] == [
        True,
        False,
        False,
        True,
        True,
    ]
    assert list(Book.objects.all()) == [third]


@pytest.mark.parametrize(
    ("mutation", "variables", "field"),
    [
        (ADD, {"books": [draft()] * (MOST_ITEMS + 1)}, "books"),
        (UPSERT, {"books": [keyed("a")] * (MOST_ITEMS + 1)}, "books"),
        (DELETE, {"ids": ["1"] * (MOST_ITEMS + 1)}, "bookIds"),
    ],
)
def test_a_longer_list_is_refused(refused, mutation, variables, field):
    extensions = refused(mutation, **variables)
    assert (extensions["code"], extensions["field"]) == ("BAD_USER_INPUT", field)
    assert Book.objects.count() == 0


def test_an_empty_list_changes_nothing(ask):
    assert ask(ADD, books=[])["data"]["addBooks"] == {"books": [], "errors": []}
    assert ask(DELETE, ids=[])["data"]["deleteBooks"] == []


def test_a_list_takes_a_constant_number_of_queries(ask, django_assert_max_num_queries):
    for count in (10, MOST_ITEMS):
        books = [keyed(str(n), f"Book {n}") for n in range(count)]
        with django_assert_max_num_queries(20):
            answer = ask(UPSERT, books=books)
        assert len(answer["data"]["upsertBooks"]["books"]) == count
        with django_assert_max_num_queries(20):
            ask(
                DELETE,
                ids=[book["id"] for book in answer["data"]["upsertBooks"]["books"]],
            )


def test_a_failed_answer_stores_nothing(refused, settings):
    """Whatever fails the answer of a mutation rolls it back."""
    settings.CATALOG_ROW_BUDGET = 1
    assert refused(ADD, books=[draft(), draft()])["code"] == "RESULT_TOO_LARGE"
    assert Book.objects.count() == 0
