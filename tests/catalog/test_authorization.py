"""Who may change the catalogue with CATALOG_WRITES=authenticated."""

import pytest
from django.contrib.auth.models import User

from catalog.models import Author, Book, Category
from tests.catalog.factories import AuthorFactory, BookFactory
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db

CHANGES = [
    'addAuthor(author: {firstName: "A", lastName: "B"}) { id }',
    'updateAuthor(id: 1, author: {firstName: "A", lastName: "B"}) { id }',
    "deleteAuthor(id: 1)",
    'addBook(book: {name: "A", pageCount: 1, authorId: 1}) { id }',
    'updateBook(id: 1, book: {name: "A", pageCount: 1, authorId: 1}) { id }',
    "deleteBook(id: 1)",
    'addCategory(category: {name: "A"}) { id }',
]


@pytest.fixture(autouse=True)
def authenticated(settings):
    settings.CATALOG_WRITES = "authenticated"
    settings.CATALOG_TOKEN_AUTHENTICATOR = "tests.catalog.authentication.authenticate"
    UserFactory.create(username="staff", staff=True)
    UserFactory.create(username="visitor")
    UserFactory.create(username="gone", staff=True, is_active=False)


@pytest.mark.parametrize(
    ("change", "authorization", "code"),
    [
        *((change, None, "UNAUTHENTICATED") for change in CHANGES),
        *((change, "Bearer visitor", "FORBIDDEN") for change in CHANGES),
        (CHANGES[0], "", "UNAUTHENTICATED"),
        (CHANGES[0], "Bearer", "UNAUTHENTICATED"),
        (CHANGES[0], "Bearer ", "UNAUTHENTICATED"),
        (CHANGES[0], "Bearer unknown", "UNAUTHENTICATED"),
        (CHANGES[0], "Basic staff", "UNAUTHENTICATED"),
        (CHANGES[0], "Bearer gone", "UNAUTHENTICATED"),
    ],
)
def test_a_change_without_the_right_is_refused(ask, change, authorization, code):
    headers = {} if authorization is None else {"Authorization": authorization}
    BookFactory.create(pk=1, author=AuthorFactory.create(pk=1))
    answer = ask(f"mutation {{ change: {change} }}", headers=headers)
    assert answer["data"] == {"change": None}
    assert answer["errors"][0]["extensions"] == {"code": code}
    assert (Author.objects.count(), Book.objects.count()) == (1, 1)
    assert not Category.objects.exists()


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_a_staff_token_may_change(ask, scheme):
    headers = {"Authorization": f"{scheme} staff"}
    answer = ask(f"mutation {{ {CHANGES[0]} }}", headers=headers)
    assert "errors" not in answer
    assert Author.objects.count() == 1


def test_a_session_is_not_a_token(client, ask):
    client.force_login(User.objects.get(username="staff"))
    answer = ask(f"mutation {{ {CHANGES[0]} }}")
    assert answer["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"


def test_reading_needs_no_token(ask):
    for headers in ({}, {"Authorization": "Bearer bad"}):
        answer = ask("{ getAllBooks { id } }", headers=headers)
        assert answer == {"data": {"getAllBooks": []}}
