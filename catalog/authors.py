"""Changes to authors. Run each inside a transaction."""

from __future__ import annotations

from catalog.books import MISSING
from catalog.errors import AuthorHasBooksError, NotFoundError
from catalog.events import publish_change
from catalog.identifiers import LARGEST_32, primary_key
from catalog.models import Author, Book
from catalog.text import checked, folded


def columns(*, first_name: str, last_name: str) -> dict[str, str]:
    """Return the columns of the row; raise BadUserInputError."""
    return {
        "first_name": checked(first_name, field="firstName"),
        "last_name": checked(last_name, field="lastName"),
    }


def add(*, first_name: str, last_name: str) -> int:
    """Store a new author and return the key."""
    row = columns(first_name=first_name, last_name=last_name)
    key = Author.objects.create(**row).pk
    publish_change("author.created", key, firstName=first_name, lastName=last_name)
    return key


def update(author_id: str, *, first_name: str, last_name: str) -> int:
    """Replace both names of an author and return the key."""
    row = columns(first_name=first_name, last_name=last_name)
    key = primary_key(author_id, largest=LARGEST_32)
    changed = Author.objects.filter(pk=key).update(
        **row, name_folded=folded(f"{first_name} {last_name}")
    )
    if not changed:
        raise NotFoundError(MISSING.format("author"), field="id")
    publish_change("author.updated", key, firstName=first_name, lastName=last_name)
    return key


def delete(author_id: str) -> bool:
    """Delete an author without books; False when there is none, AuthorHasBooksError otherwise."""
    key = primary_key(author_id, largest=LARGEST_32)
    if not Author.objects.lock([key]):
        return False
    if count := Book.objects.filter(author_id=key).count():
        raise AuthorHasBooksError(count)
    Author.objects.filter(pk=key).delete()
    publish_change("author.deleted", key)
    return True
