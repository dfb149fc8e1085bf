import random

import pytest

from catalog.models import Book
from catalog.texts import folded
from tests.catalog.factories import AuthorFactory, BookFactory

pytestmark = pytest.mark.django_db

SEARCH = "query ($t: String!) { searchBooks(title: $t) { name } }"
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
def found(ask):
    """Return the names of the books that a search finds."""
    author = AuthorFactory.create()
    for title in TITLES:
        BookFactory.create(name=title, author=author)

    def search(term):
        return [book["name"] for book in ask(SEARCH, t=term)["data"]["searchBooks"]]

    return search


@pytest.mark.parametrize(
    ("_case", "term", "expected"),
    [
        ("upper case finds lower case beyond ASCII", "TRÄUME", ["Straße der Träume"]),
        ("sharp s equals its capital spelling", "STRASSE", ["Straße der Träume"]),
        ("Cyrillic", "ВОЙНА", ["Война и мир"]),
        ("a final sigma equals a sigma", "οδυσσευσ", ["ΟΔΥΣΣΕΥΣ"]),
        ("a per cent sign is text", "0% w", ["100% Wolle_Garn"]),
        ("an underscore is text", "E_G", ["100% Wolle_Garn"]),
        ("a quotation mark is text", '"Cheese"', ['Say "Cheese"']),
        ("a backslash is text", ":\\t", ["C:\\Temp"]),
        ("words of a query language are text", "and or not", ["NEAR AND OR NOT"]),
        ("one letter", "é", ["Aé"]),
        ("ideographs", "日本語", ["日本語の本"]),
        ("nothing", "xyz", []),
        ("NUL is in no title", "\0", []),
        ("the empty text is in every title", "", sorted(TITLES)),
    ],
)
def test_a_title_is_found_by_any_part_of_it(found, _case, term, expected):
    assert found(term) == expected


def test_search_agrees_with_python_on_random_texts(found):
    letters = random.Random(1)  # noqa: S311
    alphabet = "aAbBKéÉßİΣς %_\\\"'😀\u0131\u017f\uffee"
    for _ in range(30):
        BookFactory.create(name="".join(letters.choices(alphabet, k=6)))
    names = list(Book.objects.values_list("name", flat=True))
    for name in names:
        for term in (name[1:4], name.swapcase(), name[:2]):
            expected = [each for each in names if folded(term) in folded(each)]
            assert found(term) == sorted(expected)


@pytest.mark.parametrize(
    "query",
    [
        "query ($t: String!) { searchBooks(title: $t) { id } }",
        "query ($t: String!) { getBookByName(name: $t) { id } }",
        "query ($t: String!) { books(title: $t) { id } }",
    ],
)
def test_a_text_that_is_longer_than_any_name_is_not_searched(
    ask, query, django_assert_num_queries
):
    for text in ("x" * 766, "ΐ" * 256, "x" * 100_000):
        with django_assert_num_queries(0):
            answer = ask(query, t=text)
        [value] = answer["data"].values()
        assert not value


def test_the_longest_name_is_found_by_all_of_its_folded_text(found):
    book = BookFactory.create(name="ΐ" * 255)
    assert found(book.name) == found(book.name.casefold()) == [book.name]
