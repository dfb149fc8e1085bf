"""ariadne with resolvers that name their joins by hand."""

from __future__ import annotations

import json
from typing import Any

from ariadne import (
    MutationType,
    ObjectType,
    QueryType,
    graphql_sync,
    make_executable_schema,
)
from django.db.models import Count
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from catalog import models
from catalog.schema.contract import schema as contract

query, mutation, author = QueryType(), MutationType(), ObjectType("Author")


@query.field("getAllBooks")
def all_books(*_: Any) -> Any:
    return models.Book.objects.select_related("author", "category")


@query.field("getAllAuthors")
def all_authors(*_: Any) -> Any:
    rows = models.Author.objects.annotate(book_count=Count("books")).order_by("pk")
    return rows.prefetch_related("books")


@author.field("books")
def books(row: models.Author, _info: Any) -> Any:
    return row.books.all()


@query.field("searchBooks")
def search_books(_: Any, _info: Any, title: str) -> Any:
    rows = models.Book.objects.filter(name__icontains=title).order_by("name", "pk")
    return rows.select_related("author", "category")


@query.field("getBookById")
def book_by_id(_: Any, _info: Any, id: str) -> Any:  # noqa: A002
    rows = models.Book.objects.select_related("author", "category")
    return rows.filter(pk=id).first()


@mutation.field("addBook")
def add_book(_: Any, _info: Any, book: dict[str, Any]) -> Any:
    return models.Book.objects.create(
        name=book["name"], page_count=book["page_count"], author_id=book["author_id"]
    )


schema = make_executable_schema(
    str(contract), query, mutation, author, convert_names_case=True
)


@csrf_exempt
def view(request: HttpRequest) -> JsonResponse:
    _, answer = graphql_sync(schema, json.loads(request.body), context_value=request)
    return JsonResponse(answer)
