"""The round trips of `manage.py demo`: a book, a recording with its event, a chat, a document."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import orjson
from django.contrib.auth.models import AbstractUser

from config.demo.steps import Instance, StepError, subscription
from gateway import keys
from gateway.models import Document
from recording.accounts import personal_tokens
from recording.library import importing
from recording.webhooks import SUMMARY_COMPLETED, SUMMARY_COMPLETED_SAMPLE

AUTHOR = {"firstName": "Ada", "lastName": "Lovelace"}
BOOK = {"name": "Notes on the Analytical Engine", "pageCount": 66}
ADD_AUTHOR = "mutation ($author: AuthorInput!) { addAuthor(author: $author) { id } }"
ADD_BOOK = "mutation ($book: BookInput!) { addBook(book: $book) { id } }"
READ_BOOK = """query ($id: ID!) {
  getBookById(id: $id) { name pageCount author { firstName lastName bookCount } }
}"""
DELETE = "mutation ($book: ID!, $author: ID!) { deleteBook(id: $book) deleteAuthor(id: $author) }"

TENANT = "demo"
MODEL = "echo"  # built in, costs nothing
QUESTION = "Who wrote the first program?"
INGEST_COMPLETED = "ingest.completed"

STATUSES = {0: "pending", 1: "delivered"}
POLL_S = 0.2
RETRY_S = 100.0  # the first retry comes about a minute later


def run(instance: Instance, account: AbstractUser, *, failing: bool) -> None:
    """Make the round trips, and delete what they made. Raises StepError."""
    with ExitStack() as made:
        with instance.step(f"A personal token is made for {account}"):
            created = personal_tokens.create(user=account, days=1, name="demo command")
        made.callback(created.token.delete)
        instance.use(created.text)
        _add_a_book(instance)
        _import_a_recording(instance, account, failing=failing)
    with ExitStack() as made:
        with instance.step(f"A gateway key is made for {TENANT} of tenant {TENANT}"):
            key = keys.create(
                tenant=TENANT, principal=TENANT, days=1, name="demo command"
            )
        made.callback(key.key.delete)
        instance.use(key.text)
        _chat(instance)
        _ingest_a_document(instance)


def _add_a_book(instance: Instance) -> None:
    def ask(query: str, **variables: Any) -> dict[str, Any]:
        request = {"query": query, "variables": variables}
        response = instance.call("POST", "/graphql", json=request)
        if response.get("errors") or not isinstance(data := response.get("data"), dict):
            raise StepError(f"/graphql answered {response}")
        return data

    with instance.step("A book is added over GraphQL"):
        author = ask(ADD_AUTHOR, author=AUTHOR)["addAuthor"]["id"]
        book = ask(ADD_BOOK, book=BOOK | {"authorId": int(author)})["addBook"]["id"]
        instance.show(book_id=book)
    with instance.step("It is read with its author in one query"):
        read = ask(READ_BOOK, id=book)["getBookById"]
        if read != BOOK | {"author": AUTHOR | {"bookCount": 1}}:
            raise StepError(f"the book was read as {read}")
        instance.show(book=f"{read['name']}, {read['pageCount']} pages")
    with instance.step("Both are deleted again"):
        ask(DELETE, book=book, author=author)


def _import_a_recording(
    instance: Instance, account: AbstractUser, *, failing: bool
) -> None:
    """Import a recording and wait for its event, which the receiver may refuse once."""
    sample = {**SUMMARY_COMPLETED_SAMPLE, "audio_id": f"demo-{uuid4().hex}"}
    body, statuses = {"events": [SUMMARY_COMPLETED]}, (500, 204) if failing else (204,)
    title = f"A subscription to {SUMMARY_COMPLETED} is created"
    with (
        subscription(instance, title, "/v1/webhooks", body, statuses) as subscribed,
        ExitStack() as made,
    ):
        with instance.step("A recording with its summary is imported"):
            raw = orjson.dumps(sample)
            imported = importing.import_recording(account=account, raw=raw)
            made.callback(imported.recording.delete)
            if imported.event is None:
                raise StepError("the import published no event")
            event = imported.event.public_id
            instance.show(title=sample["title"], event=event)

        def expect_event(timeout_s: float) -> None:
            received = subscribed.next_event(timeout_s)
            if received.event_id != event:
                raise StepError(
                    f"the event that arrived is {received.event_id}, not {event}"
                )
            for name in ("delivery", "timestamp", "signature"):
                instance.show(**{name: received.headers[f"x-recording-{name}"]})

        with instance.step(f"{SUMMARY_COMPLETED} arrives, and its signature holds"):
            expect_event(instance.timeout_s)
        if failing:
            with instance.step("It was answered 500: the delivery record says pending"):
                _expect_record(instance, subscribed.path, "last_error")
            with instance.step(
                "It arrives again, about a minute later, with a fresh signature"
            ):
                expect_event(RETRY_S)
        with instance.step("Its delivery record says delivered"):
            _expect_record(instance, subscribed.path, "delivered_at")


def _expect_record(instance: Instance, path: str, field: str) -> None:
    """Wait until a field of the delivery record is set, and show the record."""
    deadline = time.monotonic() + instance.timeout_s
    path += "/deliveries"
    while not (items := instance.call("GET", path)["items"]) or not items[0][field]:
        if time.monotonic() > deadline:
            raise StepError(
                f"after {instance.timeout_s:.0f} s the delivery record still says {items}"
            )
        time.sleep(POLL_S)
    record = items[0]
    status = f"{record['status']} ({STATUSES.get(record['status'], 'failed')})"
    names = ("attempts", "last_error", "delivered_at")
    instance.show(status=status, **{n: record[n] for n in names if record[n]})


def _chat(instance: Instance) -> None:
    with instance.step("The models are listed"):
        models = [model["id"] for model in instance.call("GET", "/v1/models")["data"]]
        instance.show(models=", ".join(models) or "none")
        if MODEL not in models:
            reason = f"left out: there is no model {MODEL!r} for this tenant"
            instance.show(chat=reason)
            return
    with instance.step("A chat answer streams"):
        started, first_s, texts = time.monotonic(), 0.0, list[str]()
        path, messages = "/v2/chat/completions", [{"role": "user", "content": QUESTION}]
        body = {"model": MODEL, "messages": messages, "stream": True}
        with instance.request("POST", path, json=body, stream=True) as response:
            for line in response.iter_lines():
                texts += _texts(line)
                if texts:
                    first_s = first_s or time.monotonic() - started
        if not texts:
            raise StepError("the stream had no chunk")
        first = f"after {first_s * 1000:.0f} ms, {len(texts)} chunks in all"
        instance.show(first=first, answer="".join(texts))


def _texts(line: bytes) -> list[str]:
    """Return the texts that a line of the stream brings. Raises StepError."""
    if not line.startswith(b"data: "):
        return []
    chunk = orjson.loads(line.removeprefix(b"data: "))
    if "error" in chunk or "detail" in chunk:
        raise StepError(f"the stream ended early: {chunk}")
    deltas = [choice.get("delta", {}) for choice in chunk.get("choices", ())]
    return [delta["content"] for delta in deltas if delta.get("content")]


def _ingest_a_document(instance: Instance) -> None:
    title = f"A tenant's subscription to {INGEST_COMPLETED} is created"
    body = {"event_types": [INGEST_COMPLETED]}
    text = f"# Notes\n\nWritten by a demonstration, {uuid4().hex}."
    path = "/v1/webhooks/subscriptions"
    with subscription(instance, title, path, body) as subscribed, ExitStack() as made:
        with instance.step("A document is ingested"):
            created = instance.call("POST", "/v1/ingest", 201, json={"text": text})
            document = Document.objects.filter(public_id=created["document_id"])
            made.callback(document.delete)
            instance.show(document=created["document_id"])
        with instance.step(f"{INGEST_COMPLETED} arrives, and its signature holds"):
            received = subscribed.next_event(instance.timeout_s)
            if received.json()["data"] != created:
                raise StepError("the event names another document")
            signature = received.headers["x-gateway-signature"]
            instance.show(event=received.event_id, signature=signature)
