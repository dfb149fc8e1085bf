"""books(first, after, title, authorId, categoryId)"""

import pytest

from catalog.models import Author, Book
from tests.catalog.factories import AuthorFactory
from tests.docs.samples import sample

PAGE = """query ($first: Int = 100, $after: ID, $title: String, $author: Int, $category: Int) {
  books(first: $first, after: $after, title: $title, authorId: $author, categoryId: $category)
  { id } }"""


@pytest.fixture
def page(ask):
    def ids(**variables):
        return [int(book["id"]) for book in ask(PAGE, **variables)["data"]["books"]]

    return ids


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, [1, 2, 3, 4, 5, 6]),
        ({"first": 2}, [1, 2]),
        ({"first": 2, "after": 2}, [3, 4]),
        ({"first": 0}, []),
        ({"first": 1_000, "after": "6"}, []),
        ({"after": 2**63 - 1}, []),
        ({"title": "ALPHA"}, [2, 3, 4]),
        ({"title": ""}, [1, 2, 3, 4, 5, 6]),
        ({"title": "\0"}, []),
        ({"author": 1}, [1, 3, 5]),
        ({"author": 99}, []),
        ({"category": 2}, [3, 6]),
        ({"category": 1, "author": 2, "title": "a"}, [2]),
        ({"title": "alpha", "first": 1, "after": 2, "author": 2}, [4]),
        ({"title": None, "author": None, "category": None, "after": None}, [1, 2, 3, 4, 5, 6]),
    ],
)  # fmt: skip
def test_a_page_has_the_books_behind_an_id_that_fulfil_all_conditions(
    shelf, page, variables, expected
):
    assert page(**variables) == expected


@pytest.mark.parametrize("after", ["x", "", "0", "-1", "01", str(2**63)])
def test_nothing_lies_behind_an_id_that_no_book_can_have(shelf, page, after):
    assert page(after=after) == []


def test_a_page_goes_on_behind_a_book_that_is_gone(shelf, page):
    Book.objects.filter(pk=3).delete()
    assert page(after=3) == [4, 5, 6]


@pytest.mark.parametrize("first", [-1, 1_001, None])
def test_a_page_has_at_most_a_thousand_books(shelf, refused, first):
    assert refused(PAGE, first=first) == {"code": "BAD_USER_INPUT", "field": "first"}


def test_without_a_number_a_page_has_a_hundred_books(db, page):
    author: Author = AuthorFactory.create()
    books = [Book(name="b", page_count=1, author=author) for _ in range(101)]
    Book.objects.bulk_create(books)
    first = page()
    assert len(first) == 100
    assert len(page(after=first[-1])) == 1


def test_the_page_of_the_docs_is_answered(shelf, ask):
    answer = ask(sample("catalog.md", "graphql", "page"))
    assert [book["name"] for book in answer["data"]["books"]] == ["omega"]
