"""Changes to authors. Run each inside a transaction."""

from __future__ import annotations

from catalog.errors import AuthorHasBooksError, NotFoundError
from catalog.identifiers import LARGEST_32, primary_key
from catalog.models import Author, Book, locked
from catalog.text_checks import check_name, folded


def check_names(first_name: str, last_name: str) -> None:
    check_name(first_name, field="firstName")
    check_name(last_name, field="lastName")


def add(*, first_name: str, last_name: str) -> int:
    """Store a new author and return the key."""
    check_names(first_name, last_name)
    return Author.objects.create(first_name=first_name, last_name=last_name).pk


def update(author_id: str, *, first_name: str, last_name: str) -> int:
    """Replace both names of an author and return the key."""
    check_names(first_name, last_name)
    key = primary_key(author_id, largest=LARGEST_32)
    if not Author.objects.filter(pk=key).update(
        first_name=first_name,
        last_name=last_name,
        name_folded=folded(f"{first_name} {last_name}"),
    ):
        raise NotFoundError("author", field="id")
    return key


def delete(author_id: str) -> bool:
    """Delete an author without books; return False if there is no such author.

    Raise AuthorHasBooksError if there are books.
    """
    key = primary_key(author_id, largest=LARGEST_32)
    if not locked(Author, [key]):
        return False
    if count := Book.objects.filter(author_id=key).count():
        raise AuthorHasBooksError(count)
    Author.objects.filter(pk=key).delete()
    return True
