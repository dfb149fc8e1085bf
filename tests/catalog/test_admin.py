from __future__ import annotations

import pytest
from django.urls import reverse

from catalog import demo
from catalog.models import Author, Book
from tests.catalog.factories import AuthorFactory, BookFactory

pytestmark = pytest.mark.django_db

LISTS = ["book", "author", "category"]


def address(model, page="changelist", *arguments: object):
    return reverse(f"admin:catalog_{model}_{page}", args=arguments)


@pytest.mark.parametrize(
    ("model", "term", "expected"),
    [
        ("book", "ВОЙНА", ["Война и мир"]),
        ("book", "%", []),
        ("book", "a' OR 1=1 --", []),
        ("author", "ÉMILE z", ["Émile Zola"]),
        ("category", "SCI", ["Science"]),
    ],
)
def test_a_list_is_searched_as_the_api_searches(admin_client, model, term, expected):
    demo.load()
    listed = admin_client.get(address(model), {"q": term}).context["cl"].result_list
    assert [str(row) for row in listed] == expected


def test_lists_show_counts_that_lead_to_the_books(admin_client):
    author = AuthorFactory.create()
    BookFactory.create_batch(3, author=author)
    BookFactory.create()
    page = admin_client.get(address("author")).content.decode()
    link = f"{address('book')}?author__id__exact={author.pk}"
    assert f'<a href="{link}">3</a>' in page
    assert len(admin_client.get(link).context["cl"].result_list) == 3


@pytest.mark.parametrize(("pages", "shown"), [("none", 1), ("long", 1), ("odd", 3)])
def test_books_are_filtered_by_length(admin_client, pages, shown):
    for count in (0, 100, 900):
        BookFactory.create(page_count=count)
    page = admin_client.get(address("book"), {"pages": pages})
    assert len(page.context["cl"].result_list) == shown


def test_authors_are_picked_by_search_instead_of_a_list(admin_client):
    demo.load()
    page = admin_client.get(address("book", "add")).content.decode()
    assert "admin-autocomplete" in page
    assert "Толстой" not in page
    answer = admin_client.get(
        reverse("admin:autocomplete"),
        {"app_label": "catalog", "model_name": "book", "field_name": "author", "term": "толст"},
    )  # fmt: skip
    assert [option["text"] for option in answer.json()["results"]] == ["Лев Толстой"]


def test_text_is_stored_verbatim_and_blank_text_is_refused(admin_client):
    author = AuthorFactory.create()
    form = {"name": "  Emma ", "page_count": "1", "author": str(author.pk)}
    admin_client.post(address("book", "add"), form)
    book = Book.objects.get()
    assert (book.name, book.name_folded) == ("  Emma ", "  emma ")
    for name in ("", "  ", "x" * 256, "a\0"):
        answer = admin_client.post(address("book", "add"), form | {"name": name})
        assert answer.status_code == 200
        assert "name" in answer.context["adminform"].form.errors
    assert Book.objects.count() == 1


def test_an_author_with_books_is_not_deleted(admin_client):
    author = BookFactory.create().author
    admin_client.post(address("author", "delete", author.pk), {"post": "yes"})
    assert Author.objects.filter(pk=author.pk).exists()
