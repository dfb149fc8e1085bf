"""The operations that are compared, and the data they run on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.db import transaction

from catalog.models import Author, Book, Category

BOOKS_PER_AUTHOR = 10
BOOKS_PER_CATEGORY = 100
BODIES = 50
WORDS = ("stone", "river", "garden", "winter", "mirror", "island", "letter", "shadow")

QUERIES = {
    "getAllBooks": """query getAllBooks {
        getAllBooks { id name pageCount author { id firstName lastName } category { id name } } }""",
    "getAllAuthors": """query getAllAuthors {
        getAllAuthors { id firstName lastName bookCount books { id name pageCount } } }""",
    "searchBooks": """query searchBooks($title: String!) {
        searchBooks(title: $title) { id name author { firstName lastName } } }""",
    "getBookById": """query getBookById($id: ID!) {
        getBookById(id: $id) { id name pageCount author { firstName lastName } category { name } } }""",
    "addBook": """mutation addBook($book: BookInput!) {
        addBook(book: $book) { id name author { firstName } } }""",
}

# PostGraphile names fields after the tables; aliases make the answers comparable.
_POSTGRAPHILE_BOOK = "id: rowId name pageCount"
POSTGRAPHILE = {
    "getAllBooks": f"""query getAllBooks {{ getAllBooks: catalogBooksList(orderBy: [PRIMARY_KEY_ASC]) {{
        {_POSTGRAPHILE_BOOK} author {{ id: rowId firstName lastName }} category {{ id: rowId name }} }} }}""",
    "getAllAuthors": f"""query getAllAuthors {{ getAllAuthors: catalogAuthorsList(orderBy: [PRIMARY_KEY_ASC]) {{
        id: rowId firstName lastName bookCount: authoredCatalogBooks {{ totalCount }}
        books: authoredCatalogBooksList(orderBy: [PRIMARY_KEY_ASC]) {{ {_POSTGRAPHILE_BOOK} }} }} }}""",
    "searchBooks": """query searchBooks($title: String!) { searchBooks: searchBooksList(title: $title) {
        id: rowId name author { firstName lastName } } }""",
    "getBookById": f"""query getBookById($id: BigInt!) {{ getBookById: catalogBook(rowId: $id) {{
        {_POSTGRAPHILE_BOOK} author {{ firstName lastName }} category {{ name }} }} }}""",
    "addBook": """mutation addBook($book: CatalogBookInput!) { addBook: createCatalogBook(input: {catalogBook: $book}) {
        catalogBook { id: rowId name author { firstName } } } }""",
}


@transaction.atomic
def seed(books: int) -> None:
    """Fill an empty database: one author per ten books, one category per hundred."""
    authors = [
        Author(first_name=f"First {n}", last_name=f"Last {n}")
        for n in range(max(1, books // BOOKS_PER_AUTHOR))
    ]
    categories = [
        Category(name=f"Category {n}", description=f"About {n}")
        for n in range(max(1, books // BOOKS_PER_CATEGORY))
    ]
    Author.objects.bulk_create(authors, 2_000)
    Category.objects.bulk_create(categories, 2_000)
    rows = (
        Book(
            name=f"The {WORDS[n % 8]} and the {WORDS[n // 8 % 8]} {n}",
            page_count=n % 900,
            author=authors[n % len(authors)],
            category=categories[n % len(categories)] if n % 5 else None,
        )
        for n in range(books)
    )
    Book.objects.bulk_create(rows, 2_000)


def bodies(case: str, books: int, queries: Mapping[str, str] = QUERIES) -> list[bytes]:
    """Return request bodies of a case, which a client sends in turn."""

    def body(n: int) -> bytes:
        known: dict[str, dict[str, Any]] = {
            "searchBooks": {"title": f"{WORDS[n % 8].upper()} AND"},
            "getBookById": {"id": str(n * 7919 % books + 1)},
            "addBook": {"book": {"name": f"New {n}", "pageCount": n, "authorId": 1}},
        }
        variables = known.get(case, {})
        if queries is POSTGRAPHILE and case == "addBook":
            variables["book"]["nameFolded"] = f"new {n}"
        document = {
            "query": queries[case],
            "operationName": case,
            "variables": variables,
        }
        return json.dumps(document).encode()

    return [body(n) for n in range(BODIES)]
