"""Pages of connections: walked both ways, of owners, ordered, limited."""

from __future__ import annotations

import base64
import json

import pytest

from catalog import filters, paging
from catalog.models import Book
from catalog.schema.contract import schema
from tests.catalog.conftest import PAGE
from tests.catalog.factories import AuthorFactory, BookFactory, CategoryFactory

pytestmark = pytest.mark.django_db

ORDERS = {
    "ID_ASC": lambda book: book.pk,
    "NAME_ASC": lambda book: (book.name, book.pk),
    "PAGE_COUNT_ASC": lambda book: (book.page_count, book.pk),
    "NAME_IGNORING_CASE_ASC": lambda book: (book.name.casefold(), book.pk),
}


def ids(answer):
    return [int(node["id"]) for node in answer["nodes"]]


@pytest.mark.parametrize("size", [1, 3, 10])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("descending", [False, True])
def test_walking_forward_and_back_sees_every_row_once_in_order(
    page, books, order, size, descending
):
    expected = [book.pk for book in sorted(books, key=ORDERS[order])]
    if descending:
        expected, order = expected[::-1], order.replace("ASC", "DESC")
    walked, cursor = [], None
    while True:
        answer = page(first=size, after=cursor, order=order)
        walked += ids(answer)
        assert answer["pageInfo"]["hasPreviousPage"] is (cursor is not None)
        assert answer["totalCount"] == len(books)
        cursor = answer["pageInfo"]["endCursor"]
        if not answer["pageInfo"]["hasNextPage"]:
            break
    assert walked == expected
    walked_back: list[int] = []
    cursor = None
    while True:
        answer = page(last=size, before=cursor, order=order)
        walked_back = ids(answer) + walked_back
        assert answer["pageInfo"]["hasNextPage"] is (cursor is not None)
        cursor = answer["pageInfo"]["startCursor"]
        if not answer["pageInfo"]["hasPreviousPage"]:
            break
    assert walked_back == expected


def test_a_page_between_two_cursors(page, books):
    edges = page(first=10)["edges"]
    inner = page(first=3, after=edges[1]["cursor"], before=edges[8]["cursor"])
    assert ids(inner) == [book.pk for book in books[2:5]]
    assert inner["pageInfo"]["hasNextPage"] is True
    last = page(last=3, after=edges[1]["cursor"], before=edges[8]["cursor"])
    assert ids(last) == [book.pk for book in books[5:8]]


def test_a_cursor_outlives_its_row(page, books):
    cursor = page(first=3)["pageInfo"]["endCursor"]
    books[2].delete()
    assert ids(page(first=2, after=cursor)) == [books[3].pk, books[4].pk]


def test_an_empty_page_has_no_cursors(page, books):
    empty = page(first=0)
    assert empty["pageInfo"] == {
        "hasNextPage": True,
        "hasPreviousPage": False,
        "startCursor": None,
        "endCursor": None,
    }
    end = page(first=100)["pageInfo"]["endCursor"]
    beyond = page(first=5, after=end)["pageInfo"]
    assert (beyond["hasNextPage"], beyond["hasPreviousPage"]) == (False, True)


@pytest.mark.parametrize(
    "order", ["ID_ASC", "ID_DESC", "NAME_ASC", "NAME_DESC", "PAGE_COUNT_DESC"]
)
def test_an_empty_page_knows_the_rows_at_its_bound(page, order):
    def flags(**window):
        answer = page(order=order, **window)
        assert answer["nodes"] == []
        return answer["pageInfo"]["hasPreviousPage"], answer["pageInfo"]["hasNextPage"]

    assert flags(first=2) == flags(last=2) == (False, False)
    one = BookFactory.create(name="one")
    cursor = page(first=1, order=order)["pageInfo"]["endCursor"]
    assert flags(first=2, after=cursor) == (True, False)
    assert flags(after=cursor) == (True, False)
    assert flags(first=0, after=cursor) == (True, False)
    assert flags(last=2, before=cursor) == (False, True)
    assert flags(last=0, before=cursor) == (False, True)
    assert flags(first=0) == (False, True)
    assert flags(last=0) == (True, False)
    nothing = {"title": "nothing like it"}
    assert flags(first=2, after=cursor, filter=nothing) == (False, False)
    one.delete()
    assert (
        flags(first=2, after=cursor) == flags(last=2, before=cursor) == (False, False)
    )


def test_filters_hold_together(page, books):
    category = CategoryFactory.create()
    book = BookFactory.create(name="BA ba", page_count=7, category=category)
    BookFactory.create(name="ba", page_count=8, category=category)
    conditions = {
        "title": "Ba",
        "categoryId": category.pk,
        "maxPageCount": 7,
        "minPageCount": 7,
        "authorId": book.author.pk,
    }
    assert ids(page(filter=conditions)) == [book.pk]
    assert ids(page(filter={"authorId": 2**31 - 1})) == []
    assert ids(page(filter={"authorId": -1})) == []
    assert page(filter={"title": "b"}, first=2)["totalCount"] == 5
    assert len(ids(page(filter={"title": None}))) == 12


def cursor_of(*values: object):
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode()


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("first", {"first": -1}),
        ("first", {"first": 101}),
        ("last", {"last": 101}),
        ("last", {"first": 1, "last": 1}),
        ("after", {"after": "x"}),
        ("after", {"after": "é"}),
        ("after", {"after": cursor_of()}),
        ("after", {"after": cursor_of("1")}),
        ("after", {"after": cursor_of(True)}),
        ("after", {"after": cursor_of(None)}),
        ("after", {"after": cursor_of(2**63)}),
        ("after", {"after": cursor_of(1, 2)}),
        ("after", {"after": cursor_of([1])}),
        ("after", {"order": "NAME_ASC", "after": cursor_of("a\0", 1)}),
        ("before", {"order": "PAGE_COUNT_ASC", "before": cursor_of("a", 1)}),
        ("before", {"before": base64.urlsafe_b64encode(b"\xff").decode()}),
    ],
)
def test_a_bad_window_is_bad_input(ask, field, arguments):
    answer = ask(PAGE, **{"order": "ID_ASC", **arguments})
    assert answer["data"] == {"books": None}
    [error] = answer["errors"]
    assert error["extensions"] == {"code": "BAD_USER_INPUT", "field": field}


def test_authors_page_by_name_and_are_found_without_letter_case(ask):
    rows = [("Émile", "Zola"), ("Ada", "Zola"), ("Jane", "Austen"), ("Zoë", "ÁVILA")]
    for first, last in rows:
        AuthorFactory.create(first_name=first, last_name=last)
    query = """query ($after: String, $name: String) {
      authors(first: 3, after: $after, orderBy: NAME_ASC, filter: {name: $name}) {
        nodes { firstName bookCount } pageInfo { endCursor } } }"""
    answer = ask(query)["data"]["authors"]
    assert [node["firstName"] for node in answer["nodes"]] == ["Jane", "Ada", "Émile"]
    next_page = ask(query, after=answer["pageInfo"]["endCursor"])["data"]["authors"]
    assert next_page["nodes"] == [{"firstName": "Zoë", "bookCount": 0}]
    ask_for = ask(query, name="zoë áv")["data"]["authors"]["nodes"]
    assert [node["firstName"] for node in ask_for] == ["Zoë"]


def test_categories_page_with_their_books(ask):
    category = CategoryFactory.create(name="Ähm")
    BookFactory.create(category=category, name="One")
    query = '{ categories(filter: {name: "äh"}, orderBy: NAME_DESC) { nodes { books { name } } } }'
    assert ask(query)["data"]["categories"] == {"nodes": [{"books": [{"name": "One"}]}]}


@pytest.mark.parametrize(
    ("fields", "exactly"),
    [
        ("nodes { name }", 2),
        ("edges { node { author { firstName } category { name } } }", 2),
        ("nodes { id } edges { node { author { bookCount books { id } } } }", 4),
        ("totalCount pageInfo { hasNextPage }", 2),
        ("pageInfo { hasNextPage hasPreviousPage }", 2),
    ],
)
def test_a_page_takes_a_constant_number_of_queries(
    ask, django_assert_num_queries, fields, exactly
):
    for rows in (5, 20):
        BookFactory.create_batch(rows)
        after = cursor_of(Book.objects.order_by("pk")[1].pk)
        with django_assert_num_queries(exactly):
            answer = ask(f'{{ books(after: "{after}") {{ {fields} }} }}')
        assert "errors" not in answer


NESTED = """query ($first: Int, $after: String, $last: Int, $before: String,
  $filter: BookFilter, $order: BookOrder = ID_ASC, $then: [BookOrder!]) {
  getAllCategories { booksPage(first: $first, after: $after, last: $last, before: $before,
                               filter: $filter, orderBy: $order, thenBy: $then) {
    nodes { id } pageInfo { hasNextPage hasPreviousPage } totalCount } } }"""


@pytest.mark.parametrize("order", [*ORDERS, "NAME_DESC", "PAGE_COUNT_DESC"])
@pytest.mark.parametrize(
    "window", [{"first": 2}, {"last": 2}, {"first": 0}, {"filter": {"title": "B"}}]
)
def test_a_page_of_an_owner_is_that_of_all_books_with_its_id(
    ask, page, books, order, window
):
    categories = CategoryFactory.create_batch(3)
    for place, book in enumerate(books):
        book.category = categories[place % 2]  # the third has none
        book.save()
    nested = ask(NESTED, order=order, **window)["data"]["getAllCategories"]
    assert len(nested) == 3
    for category, each in zip(categories, nested, strict=True):
        own = {**window.get("filter", {}), "categoryId": category.pk}
        root = page(**{**window, "filter": own}, order=order)
        assert each["booksPage"]["nodes"] == root["nodes"]
        assert each["booksPage"]["totalCount"] == root["totalCount"]
        assert each["booksPage"]["pageInfo"].items() <= root["pageInfo"].items()


def test_pages_of_all_owners_go_on_behind_one_cursor(ask, books):
    categories = CategoryFactory.create_batch(2)
    for place, book in enumerate(books):
        book.category = categories[place % 2]
        book.save()
    answer = ask(NESTED, first=2, after=cursor_of(books[4].pk))
    pages = [row["booksPage"] for row in answer["data"]["getAllCategories"]]
    assert list(map(ids, pages)) == [
        [books[n].pk for n in pair] for pair in [(6, 8), (5, 7)]
    ]
    flags = {"hasNextPage": False, "hasPreviousPage": True}
    assert [each["pageInfo"] for each in pages] == [
        flags,
        {**flags, "hasNextPage": True},
    ]


@pytest.mark.parametrize(
    ("fields", "exactly"),
    [
        ("booksPage { __typename }", 1),
        ("booksPage { totalCount }", 2),
        ("booksPage { pageInfo { hasNextPage endCursor } edges { cursor } }", 2),
        ("booksPage { nodes { name author { firstName } } }", 3),
        ("booksPage { totalCount nodes { id } edges { node { name } } }", 5),
        ("booksPage { nodes { author { booksPage(last: 1) { nodes { id } } } } }", 5),
    ],
)
def test_pages_of_owners_take_a_constant_number_of_queries(
    ask, django_assert_num_queries, fields, exactly
):
    for owners in (1, 5):
        for category in CategoryFactory.create_batch(owners):
            BookFactory.create_batch(owners, category=category)
        with django_assert_num_queries(exactly):
            answer = ask(f"{{ getAllCategories {{ {fields} }} }}")
        assert "errors" not in answer


def test_a_bad_window_of_pages_is_one_error_of_the_field_of_query(ask, books):
    CategoryFactory.create_batch(2)
    answer = ask(NESTED, first=101)
    assert answer["data"] == {"getAllCategories": None}
    [error] = answer["errors"]
    assert error["path"] == ["getAllCategories"]
    assert error["extensions"] == {"code": "BAD_USER_INPUT", "field": "first"}


def test_a_mutation_answers_pages_of_the_changed_row(ask, books):
    query = """mutation ($id: ID!) { updateAuthor(id: $id,
      author: {firstName: "A", lastName: "B"}) { booksPage(first: 1) { nodes { name } } } }"""
    answer = ask(query, id=books[0].author_id)
    assert answer["data"]["updateAuthor"]["booksPage"] == {"nodes": [{"name": "b"}]}


def test_further_orders_decide_between_equals(page, books):
    def expected(key, **options):
        return [book.pk for book in sorted(books, key=key, **options)]

    up = page(order="PAGE_COUNT_ASC", thenBy=["NAME_DESC"])
    rows = sorted(books, key=lambda book: (book.name, book.pk), reverse=True)
    rows.sort(key=lambda book: book.page_count)
    assert ids(up) == [book.pk for book in rows]
    ties = page(
        order="PAGE_COUNT_ASC", thenBy=["PAGE_COUNT_DESC", "ID_DESC", "NAME_ASC"]
    )
    assert ids(ties) == expected(lambda book: (book.page_count, -book.pk))
    assert ids(page(order="ID_DESC", thenBy=["NAME_ASC"])) == expected(lambda b: -b.pk)
    walked: list[int] = []
    cursor = None
    while len(walked) < len(books):
        part = page(first=3, after=cursor, order="PAGE_COUNT_ASC", thenBy=["NAME_DESC"])
        walked, cursor = walked + ids(part), part["pageInfo"]["endCursor"]
    assert walked == ids(up)


def test_the_cost_of_a_page_is_that_of_its_literal_size(ask, books):
    inner = "nodes { author { booksPage(first: 2) { nodes { author { %s } } } } }"
    pages = (
        "booksPage%s { nodes { id name author { id booksPage%s { nodes { id } } } } }"
    )
    few, many = ("(first: 2)",) * 2, ("", "(first: $n)")
    query = "query ($n: Int) { __typename books%s { %s } }"
    small = query.replace("($n: Int) ", "") % ("(first: 2)", inner % (pages % few))
    assert "errors" not in ask(small)
    refusal = ask(query % ("", inner % (pages % many)), n=1)["errors"][0]
    assert refusal["extensions"]["limit"] == "cost"


def test_the_rows_of_all_pages_of_a_field_are_limited(ask, books, monkeypatch):
    monkeypatch.setattr(paging, "MOST_PLACES", 4)
    AuthorFactory.create_batch(2)
    query = "{ authors { nodes { booksPage(first: %d) { edges { cursor } } } } }"
    assert "errors" not in ask(query % 3)
    [error] = ask(query % 4)["errors"]
    assert error["extensions"] == {"code": "RESULT_TOO_LARGE", "limit": 4}


def test_every_field_of_a_filter_has_a_condition():
    known = {"and_", "or_", "not_", *filters.CONDITIONS}
    for name in ("BookFilter", "AuthorFilter", "CategoryFilter"):
        fields = schema.graphql_schema.type_map[name].fields.values()
        assert {field.out_name for field in fields} <= known
