"""The operations that are compared, and the data they run on."""

from __future__ import annotations

import json
from typing import Any

from django.db import transaction

from catalog.models import Author, Book, Category

BODIES = 50
WORDS = ("stone", "river", "garden", "winter", "mirror", "island", "letter", "shadow")
QUERIES = {
    "getAllBooks": """query getAllBooks { getAllBooks { id name pageCount author { id firstName lastName } category { id name } } }""",
    "getAllAuthors": """query getAllAuthors { getAllAuthors { id firstName lastName bookCount books { id name pageCount } } }""",
    "searchBooks": """query searchBooks($title: String!) { searchBooks(title: $title) { id name author { firstName lastName } } }""",
    "getBookById": """query getBookById($id: ID!) { getBookById(id: $id) { id name pageCount author { firstName lastName } category { name } } }""",
    "addBook": """mutation addBook($book: BookInput!) { addBook(book: $book) { id name author { firstName } } }""",
}


@transaction.atomic
def seed(books: int) -> None:
    """Fill an empty database: one author per ten books, one category per hundred."""
    names = [f"{n}" for n in range(max(1, books // 10))]
    authors = Author.objects.bulk_create(
        Author(first_name=f"First {n}", last_name=f"Last {n}") for n in names
    )
    categories = Category.objects.bulk_create(
        Category(name=f"Category {n}") for n in names[::10]
    )
    Book.objects.bulk_create(
        Book(
            name=f"The {WORDS[n % 8]} and the {WORDS[n // 8 % 8]} {n}",
            page_count=n % 900,
            author=authors[n % len(authors)],
            category=categories[n % len(categories)] if n % 5 else None,
        )
        for n in range(books)
    )


def bodies(case: str, books: int) -> list[bytes]:
    """Return request bodies of a case, which a client sends in turn."""

    def body(n: int) -> bytes:
        variables: dict[str, dict[str, Any]] = {
            "searchBooks": {"title": f"{WORDS[n % 8].upper()} AND"},
            "getBookById": {"id": str(n * 7919 % books + 1)},
            "addBook": {"book": {"name": f"New {n}", "pageCount": n, "authorId": 1}},
        }
        document = {"query": QUERIES[case], "variables": variables.get(case, {})}
        return json.dumps(document).encode()

    return [body(n) for n in range(BODIES)]
