from __future__ import annotations

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.models import Book
from tests.catalog.factories import AuthorFactory, BookFactory

pytestmark = pytest.mark.django_db

TITLES = [
    "Straße der Träume",
    "ÄRGER IM PARADIES",
    "100% Wolle_Garn",
    'Say "Cheese"',
    "Война и мир",
    "ΟΔΥΣΣΕΥΣ",
    "A",
    "Aé",
    "C:\\Temp",
    "NEAR AND OR NOT",
    "日本語の本",
]


@pytest.fixture
def titles():
    author = AuthorFactory.create()
    for title in TITLES:
        BookFactory.create(name=title, author=author)


def names_matching(term):
    return sorted(book.name for book in Book.objects.search(term))


@pytest.mark.parametrize(
    ("_case", "term", "expected"),
    [
        ("lower case finds upper case beyond ASCII", "ärger", ["ÄRGER IM PARADIES"]),
        ("upper case finds lower case beyond ASCII", "TRÄUME", ["Straße der Träume"]),
        ("sharp s equals its capital spelling", "STRASSE", ["Straße der Träume"]),
        ("Cyrillic", "ВОЙНА", ["Война и мир"]),
        ("a final sigma equals a sigma", "οδυσσευσ", ["ΟΔΥΣΣΕΥΣ"]),
        ("a per cent sign is text", "0% w", ["100% Wolle_Garn"]),
        ("a lone per cent sign is text", "%", ["100% Wolle_Garn"]),
        ("an underscore is text", "E_G", ["100% Wolle_Garn"]),
        ("a lone underscore is text", "_", ["100% Wolle_Garn"]),
        ("a quotation mark is text", '"Cheese"', ['Say "Cheese"']),
        ("a backslash is text", ":\\t", ["C:\\Temp"]),
        ("words of a query language are text", "and or not", ["NEAR AND OR NOT"]),
        ("one letter", "é", ["Aé"]),
        ("two letters", "мИ", ["Война и мир"]),
        ("ideographs", "日本語", ["日本語の本"]),
        ("one ideograph", "本", ["日本語の本"]),
        ("nothing", "xyz", []),
        ("NUL is in no title", "\0", []),
        ("NUL in a longer term", "Say\0", []),
        ("the empty text is in every title", "", sorted(TITLES)),
        ("a longer text than any title", "a" * 5_000, []),
    ],
)
def test_a_title_is_found_by_any_part_of_it(titles, _case, term, expected):
    assert names_matching(term) == expected


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    title=st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12
    ),
    start=st.integers(0, 8),
    length=st.integers(0, 6),
)
def test_search_agrees_with_python_on_every_text(titles, title, start, length):
    BookFactory.create(name=title)
    for term in {title[start : start + length], title.swapcase(), title[:2]}:
        expected = {
            book.name
            for book in Book.objects.all()
            if term.casefold() in book.name.casefold()
        }
        assert set(names_matching(term)) == expected


def test_the_index_follows_changes_and_deletions(titles):
    book = Book.objects.get(name="Война и мир")
    book.name = "War and Peace"
    book.save()
    assert (names_matching("война"), names_matching("PEACE")) == ([], ["War and Peace"])
    book.delete()
    assert names_matching("peace") == []


def test_a_search_may_stop_at_a_number_of_books():
    BookFactory.create_batch(5, name="The same")
    books = Book.objects.all()
    stopped = books.filter(books.matching(books.term("same"), at_most=3))
    assert len(stopped) == (3 if connection.vendor == "sqlite" else 5)


def test_a_whole_name_is_matched_without_letter_case_and_the_oldest_wins():
    first, second = BookFactory.create(name="ÉCOLE"), BookFactory.create(name="école")
    BookFactory.create(name="école normale")
    assert list(Book.objects.named("École")) == [first, second]


@pytest.mark.parametrize(
    "query",
    [
        "query ($t: String!) { searchBooks(title: $t) { id } }",
        "query ($t: String!) { getBookByName(name: $t) { id } }",
        "query ($t: String!) { books(filter: {title: $t}) { nodes { id } totalCount } }",
        "query ($t: String!) { authors(filter: {name: $t}) { nodes { id } } }",
        "query ($t: String!) { categories(filter: {name: $t}) { nodes { id } } }",
    ],
)
def test_a_text_that_is_longer_than_any_name_is_not_searched(
    ask, query, django_assert_num_queries
):
    BookFactory.create(name="x" * 255)
    for text in ("x" * 1_532, "ΐ" * 511, "x" * 100_000, "é " * 5_000):
        with django_assert_num_queries(0):
            answer = ask(query, t=text)
        assert "errors" not in answer
        [found] = answer["data"].values()
        assert not found or not found["nodes"]


def test_the_longest_names_are_found_by_all_of_their_folded_text(ask):
    author = AuthorFactory.create(first_name="ΐ" * 255, last_name="ﬃ" * 255)
    book = BookFactory.create(name="ΐ" * 255, author=author)
    for text in (book.name, book.name.casefold()):
        answer = ask("query ($t: String!) { searchBooks(title: $t) { id } }", t=text)
        assert answer["data"]["searchBooks"] == [{"id": str(book.pk)}]
    name = f"{author.first_name} {author.last_name}".casefold()
    answer = ask(
        "query ($t: String!) { authors(filter: {name: $t}) { nodes { id } } }", t=name
    )
    assert answer["data"]["authors"]["nodes"] == [{"id": str(author.pk)}]
