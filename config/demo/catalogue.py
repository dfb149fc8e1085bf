"""A round trip of the catalogue: a book is added over GraphQL, read, found and deleted again."""

from __future__ import annotations

from typing import Any

from config.demo.steps import Client, StepError, Steps

ADD_AUTHOR = "mutation ($author: AuthorInput!) { addAuthor(author: $author) { id } }"
ADD_BOOK = "mutation ($book: BookInput!) { addBook(book: $book) { id } }"
READ_BOOK = """query ($id: ID!) {
  getBookById(id: $id) { name pageCount author { firstName lastName bookCount } }
}"""
DELETE = "mutation ($book: ID!, $author: ID!) { deleteBook(id: $book) deleteAuthor(id: $author) }"

AUTHOR = {"firstName": "Ada", "lastName": "Lovelace"}
BOOK = {"name": "Notes on the Analytical Engine", "pageCount": 66}


def run(steps: Steps, client: Client) -> None:
    """Raises StepError."""
    with steps.step("A book is added over GraphQL"):
        author = _ask(client, ADD_AUTHOR, author=AUTHOR)["addAuthor"]["id"]
        columns = BOOK | {"authorId": int(author)}
        book = _ask(client, ADD_BOOK, book=columns)["addBook"]["id"]
        steps.show("book id", book)
    with steps.step("It is read with its author in one query"):
        read = _ask(client, READ_BOOK, id=book)["getBookById"]
        if read != BOOK | {"author": AUTHOR | {"bookCount": 1}}:
            raise StepError(f"the book was read as {read}")
        steps.show("book", f"{read['name']}, {read['pageCount']} pages")
    with steps.step("Both are deleted again"):
        _ask(client, DELETE, book=book, author=author)


def _ask(client: Client, query: str, **variables: Any) -> dict[str, Any]:
    request = {"query": query, "variables": variables}
    response = client.call("POST", "/graphql", json=request)
    if response.get("errors") or not isinstance(data := response.get("data"), dict):
        raise StepError(f"/graphql answered {response}")
    return data
