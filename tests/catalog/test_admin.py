import pytest
from django.urls import reverse

from catalog import demo
from catalog.models import Author, Book
from tests.catalog.factories import AuthorFactory, BookFactory

pytestmark = pytest.mark.django_db


def address(model, page="changelist", *arguments: object):
    return reverse(f"admin:catalog_{model}_{page}", args=arguments)


@pytest.mark.parametrize(
    ("model", "term", "expected"),
    [
        ("book", "ВОЙНА", ["Война и мир"]),
        ("book", "%", []),
        ("book", "a' OR 1=1 --", []),
        ("author", "mile zol", ["Émile Zola"]),
        ("category", "SCI", ["Science"]),
    ],
)
def test_a_list_is_searched(admin_client, model, term, expected):
    demo.load()
    listed = admin_client.get(address(model), {"q": term}).context["cl"].result_list
    assert [str(row) for row in listed] == expected


def test_lists_show_how_many_books_there_are(admin_client):
    BookFactory.create_batch(3, author=AuthorFactory.create())
    [author] = admin_client.get(address("author")).context["cl"].result_list
    assert author.book_total == 3


def test_authors_are_picked_by_search_instead_of_a_list(admin_client):
    demo.load()
    page = admin_client.get(address("book", "add")).content.decode()
    assert "admin-autocomplete" in page
    assert "Толстой" not in page
    answer = admin_client.get(
        reverse("admin:autocomplete"),
        {"app_label": "catalog", "model_name": "book", "field_name": "author", "term": "Толст"},
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
