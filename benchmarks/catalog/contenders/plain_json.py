"""No GraphQL at all: JsonResponse of values(), one fixed answer per operation."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from catalog import models

AUTHOR = ("author__first_name", "author__last_name")
BOOK = ("id", "name", "page_count")


def all_books() -> Any:
    rows = models.Book.objects.order_by("pk")
    return list(
        rows.values(*BOOK, "author_id", *AUTHOR, "category_id", "category__name")
    )


def all_authors() -> Any:
    books = defaultdict(list)
    for book in models.Book.objects.order_by("pk").values(*BOOK, "author_id"):
        books[book.pop("author_id")].append(book)
    authors = models.Author.objects.order_by("pk").values(
        "id", "first_name", "last_name"
    )
    return [
        {
            **author,
            "book_count": len(books[author["id"]]),
            "books": books[author["id"]],
        }
        for author in authors
    ]


def search_books(title: str) -> Any:
    rows = models.Book.objects.filter(name__icontains=title).order_by("name", "pk")
    return list(rows.values("id", "name", *AUTHOR))


def book_by_id(id: str) -> Any:  # noqa: A002
    rows = models.Book.objects.filter(pk=id)
    return rows.values(*BOOK, *AUTHOR, "category__name").first()


def add_book(book: dict[str, Any]) -> Any:
    row = models.Book.objects.create(
        name=book["name"], page_count=book["pageCount"], author_id=book["authorId"]
    )
    return {"id": row.pk, "name": row.name, "first_name": row.author.first_name}


ANSWERS = {
    "getAllBooks": all_books,
    "getAllAuthors": all_authors,
    "searchBooks": search_books,
    "getBookById": book_by_id,
    "addBook": add_book,
}


@csrf_exempt
def view(request: HttpRequest) -> JsonResponse:
    body = json.loads(request.body)
    answer: Any = ANSWERS[body["operationName"]]
    return JsonResponse({"data": answer(**body["variables"])})
