"""The round trips of `manage.py demo` over HTTP: a book, a recording with its event, a chat."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, Queue
from typing import Any
from uuid import uuid4

import orjson
import requests
from django.contrib.auth.models import AbstractUser
from django.core.management.base import CommandError

from config.operations import own_requests
from recording.library import importing
from recording.webhooks import SUMMARY_COMPLETED, SUMMARY_COMPLETED_SAMPLE
from webhooks_core.management.receiver import Received, Receiver, verify

AUTHOR = {"firstName": "Ada", "lastName": "Lovelace"}
BOOK = {"name": "Notes on the Analytical Engine", "pageCount": 66}
ADD_AUTHOR = "mutation ($author: AuthorInput!) { addAuthor(author: $author) { id } }"
ADD_BOOK = "mutation ($book: BookInput!) { addBook(book: $book) { id } }"
READ_BOOK = "query ($id: ID!) { getBookById(id: $id) { name author { lastName } } }"
DELETE = "mutation ($book: ID!, $author: ID!) { deleteBook(id: $book) deleteAuthor(id: $author) }"

IDENTITY = {"X-Tenant-Id": "demo", "X-Principal-Id": "demo"}
CHAT = {
    "model": "echo",  # built in, costs nothing
    "messages": [{"role": "user", "content": "Who wrote the first program?"}],
    "stream": True,
}
REQUEST_S, EVENT_S, TOLERANCE_S = 15, 30, 60


class Instance:
    """A running instance, as one account uses it."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self._session = own_requests.session()
        self._session.headers["Authorization"] = f"Bearer {token}"

    def ask(self, method: str, path: str, **options: Any) -> requests.Response:
        """Return a response. Raises CommandError for one that is an error, or none."""
        try:
            response = self._session.request(
                method, self.url + path, timeout=REQUEST_S, **options
            )
        except requests.RequestException as error:
            raise CommandError(
                f"nothing answers at {self.url} ({type(error).__name__}): start it with "
                "`make run`, or name another address with --url"
            ) from error
        if not response.ok:
            answer = f"{response.status_code}: {response.text[:300]!r}"
            raise CommandError(f"{method} {path} answered {answer}")
        return response

    def query(self, query: str, **variables: Any) -> dict[str, Any]:
        """Return the data of a GraphQL response. Raises CommandError."""
        request = {"query": query, "variables": variables}
        response = self.ask("POST", "/graphql", json=request).json()
        if response.get("errors"):
            raise CommandError(f"/graphql answered {response['errors']!r}")
        data: dict[str, Any] = response["data"]
        return data


def add_a_book(instance: Instance) -> str:
    """Add a book with its author, read both, and delete them."""
    author = instance.query(ADD_AUTHOR, author=AUTHOR)["addAuthor"]["id"]
    added = BOOK | {"authorId": int(author)}
    book = instance.query(ADD_BOOK, book=added)["addBook"]["id"]
    read = instance.query(READ_BOOK, id=book)["getBookById"]
    instance.query(DELETE, book=book, author=author)
    return f"catalog: {read['name']} by {read['author']['lastName']}, added and read over GraphQL"


def deliver_a_summary(instance: Instance, account: AbstractUser) -> str:
    """Import a recording and receive its signed event."""
    sample = {**SUMMARY_COMPLETED_SAMPLE, "audio_id": f"demo-{uuid4().hex}"}
    arrived: Queue[Received] = Queue()
    with _receiver(arrived) as url:
        body = {"url": url, "events": [SUMMARY_COMPLETED]}
        created = instance.ask("POST", "/v1/webhooks", json=body).json()
        path = f"/v1/webhooks/{created['endpoint_id']}"
        imported = importing.import_recording(account=account, raw=orjson.dumps(sample))
        try:
            received = arrived.get(timeout=EVENT_S)
        except Empty:
            raise CommandError(
                f"no event within {EVENT_S} s: is the task cluster running (`manage.py "
                "qcluster`), on the same database?"
            ) from None
        finally:
            imported.recording.delete()
            instance.ask("DELETE", path)
    verification = verify(
        received, secrets=[created["secret"]], tolerance_s=TOLERANCE_S
    )
    if not verification.is_verified:
        raise CommandError(verification.message)
    return (
        f"recording: {received.event_type} {received.event_id}, {verification.message}"
    )


@contextmanager
def _receiver(arrived: Queue[Received]) -> Iterator[str]:
    """Listen on loopback while the block runs; yield the address."""

    def keep(received: Received, _status: int) -> None:
        arrived.put(received)

    with Receiver(0, on_request=keep) as receiver:
        threading.Thread(target=receiver.serve_forever, args=(0.05,)).start()
        try:
            yield f"{receiver.url}/"
        finally:
            receiver.shutdown()


def chat(instance: Instance) -> str:
    """Stream an answer."""
    path, texts = "/v2/chat/completions", list[str]()
    headers = IDENTITY | {"Authorization": None}  # the session's is an account's
    with instance.ask("POST", path, json=CHAT, headers=headers, stream=True) as stream:
        for line in stream.iter_lines():
            if line.startswith(b"data: {"):
                choices = orjson.loads(line[6:]).get("choices", ())
                texts += [choice["delta"].get("content") or "" for choice in choices]
    if not any(texts):
        raise CommandError("the stream had no chunk")
    return f"gateway: {''.join(texts)!r} in {len(texts)} chunks"
