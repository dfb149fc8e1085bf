"""A round trip of the gateway: a chat response streams, and an ingested document emits an event."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import orjson

from config.demo.arrivals import (
    Arrivals,
    next_verified,
    receiver,
    subscription,
)
from config.demo.steps import Client, StepError, Steps
from gateway import keys
from gateway.models import Document

TENANT = PRINCIPAL = "demo"
MODEL = "echo"
QUESTION = "Who wrote the first program?"
SUBSCRIPTIONS = "/v1/webhooks/subscriptions"
INGEST_COMPLETED = "ingest.completed"


def run(steps: Steps, origin: str, *, timeout_s: float) -> None:
    """Run the steps, and delete the key, subscription and document. Raises StepError."""
    with _key(steps) as text:
        client = Client(origin, text)
        _chat(steps, client)
        with receiver() as (url, arrivals):
            _ingest(steps, client, url, arrivals, timeout_s)


@contextmanager
def _key(steps: Steps) -> Iterator[str]:
    with steps.step(f"A gateway key is made for {PRINCIPAL} of tenant {TENANT}"):
        created = keys.create(
            tenant=TENANT, principal=PRINCIPAL, days=1, name="demo command"
        )
    try:
        yield created.text
    finally:
        created.key.delete()


def _chat(steps: Steps, client: Client) -> None:
    """Ask the built-in model, which costs nothing; without one, say so."""
    with steps.step("The models are listed"):
        models = [model["id"] for model in client.call("GET", "/v1/models")["data"]]
        steps.show("models", ", ".join(models) or "none")
        if MODEL not in models:
            steps.show("chat", f"left out: there is no model {MODEL!r} for this tenant")
            return
    with steps.step("A chat answer streams"):
        started, first, chunks = time.monotonic(), 0.0, []
        for chunk in _stream(client):
            first = first or time.monotonic() - started
            chunks.append(chunk)
        if not chunks:
            raise StepError("the stream had no chunk")
        steps.show("first", f"after {first * 1000:.0f} ms, {len(chunks)} chunks in all")
        steps.show("answer", "".join(chunks))


def _stream(client: Client) -> Iterator[str]:
    """Yield the text of each chunk as it arrives. Raises StepError."""
    messages = [{"role": "user", "content": QUESTION}]
    body = {"model": MODEL, "messages": messages, "stream": True}
    for line in client.lines("/v2/chat/completions", json=body):
        if not line.startswith(b"data: "):
            continue
        chunk = orjson.loads(line.removeprefix(b"data: "))
        if "error" in chunk or "detail" in chunk:
            raise StepError(f"the stream ended early: {chunk}")
        for choice in chunk.get("choices", ()):
            if text := choice.get("delta", {}).get("content"):
                yield text


def _ingest(
    steps: Steps, client: Client, url: str, arrivals: Arrivals, timeout_s: float
) -> None:
    title = f"A tenant's subscription to {INGEST_COMPLETED} is created"
    body = {"url": url, "event_types": [INGEST_COMPLETED]}
    text = f"# Notes\n\nWritten by a demonstration, {uuid4().hex}."
    with subscription(
        steps, client, SUBSCRIPTIONS, title=title, id_field="id", **body
    ) as subscribed:
        with steps.step("A document is ingested"):
            created = client.call("POST", "/v1/ingest", expect=201, json={"text": text})
            steps.show("document", created["document_id"])
        try:
            with steps.step(f"{INGEST_COMPLETED} arrives, and its signature holds"):
                secret = subscribed["secret"]
                received = next_verified(arrivals, secret=secret, timeout_s=timeout_s)
                if received.json()["data"] != created:
                    raise StepError("the event names another document")
                steps.show("event", received.event_id)
                steps.show("signature", received.headers["x-gateway-signature"])
        finally:
            Document.objects.filter(public_id=created["document_id"]).delete()
