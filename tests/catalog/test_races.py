"""Concurrent changes: one wins, the other gets a clear error."""

from typing import Any

import orjson
import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client, RequestFactory

from catalog.execution.columns import Columns
from catalog.execution.operations import GraphQLRequest
from catalog.models import Book, Category
from catalog.views import executor
from tests.catalog.factories import AuthorFactory, CategoryFactory
from tests.factories import UserFactory
from tests.threads import started

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        connection.vendor == "sqlite", reason="SQLite has one writer at a time"
    ),
]


def change(text: str) -> Any:
    """Return the data of a mutation's one field, or the extensions of its error."""
    call = GraphQLRequest(f"mutation {{ {text} }}")
    body = executor.answer(call, RequestFactory().post("/graphql")).body
    body = orjson.loads(orjson.dumps(body))
    if errors := body.get("errors"):
        return errors[0]["extensions"]
    [value] = body["data"].values()
    return value


def add(author, category=None):
    category_field = f", categoryId: {category.pk}" if category else ""
    book = f'{{name: "Emma", pageCount: 1, authorId: {author.pk}{category_field}}}'
    return change(f"addBook(book: {book}) {{ author {{ id }} category {{ id }} }}")


def delete(author):
    return change(f"deleteAuthor(id: {author.pk})")


def remove(category):
    """Delete a category as the admin does."""
    client = Client()
    client.force_login(User.objects.get(username="root"))
    address = f"/admin/catalog/category/{category.pk}/delete/"
    return client.post(address, {"post": "yes"}).status_code


def remove_many(category):
    client = Client()
    client.force_login(User.objects.get(username="root"))
    form = {"action": "delete_selected", "_selected_action": category.pk, "post": "yes"}
    return client.post("/admin/catalog/category/", form).status_code


@pytest.fixture
def before_the_answer(monkeypatch):
    """Start a call between a change and the reading of its answer; return the list of its task."""
    read, tasks = Columns.read, []

    def prepare(call, subject):
        def patched(*arguments: Any):
            monkeypatch.setattr(Columns, "read", read)
            tasks.append(started(call, subject))
            return read(*arguments)

        monkeypatch.setattr(Columns, "read", patched)
        return tasks

    return prepare


@pytest.fixture
def root(db):
    return UserFactory.create(username="root", superuser=True)


HAS_BOOKS = {"code": "AUTHOR_HAS_BOOKS", "bookCount": 1}


def test_an_author_cannot_go_before_the_new_book_is_answered(before_the_answer):
    author = AuthorFactory.create()
    tasks = before_the_answer(delete, author)
    assert add(author) == {"author": {"id": str(author.pk)}, "category": None}
    assert tasks[0].result() == HAS_BOOKS


@pytest.mark.parametrize("removal", [remove, remove_many])
def test_a_category_cannot_go_before_the_new_book_is_answered(
    before_the_answer, root, removal
):
    author, category = AuthorFactory.create(), CategoryFactory.create()
    tasks = before_the_answer(removal, category)
    assert add(author, category)["category"] == {"id": str(category.pk)}
    assert tasks[0].result() == 302
    assert not Category.objects.exists()
    assert Book.objects.get().category is None


@pytest.mark.parametrize("removed", ["author", "category", "categories"])
def test_a_change_after_a_removal_is_not_found(root, removed):
    author, category = AuthorFactory.create(), CategoryFactory.create()
    with transaction.atomic():
        if removed == "author":
            assert delete(author) is True
        else:
            assert (remove if removed == "category" else remove_many)(category) == 302
        late = started(add, author, category)
        assert not late.done()
    field = "authorId" if removed == "author" else "categoryId"
    assert late.result() == {"code": "NOT_FOUND", "field": field}
