"""A round trip of the gateway: a chat answer streams, and an ingested document is told of."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

import orjson

from config.operations.demonstration.arrivals import Arrived, next_verified, receiver
from config.operations.demonstration.steps import Client, StepError, Steps
from gateway import keys
from gateway.models import Document

TENANT = PRINCIPAL = "demo"
MODEL = "echo"
QUESTION = "Who wrote the first program?"
SUBSCRIPTIONS = "/v1/webhooks/subscriptions"
INGEST_COMPLETED = "ingest.completed"


def run(steps: Steps, url: str, *, patience_s: float) -> None:
    """Raises StepError. Leaves no key, subscription and document behind."""
    with _key(steps) as text:
        client = Client(url, text)
        _chat(steps, client)
        with receiver() as (hook, arrived):
            _ingest(steps, client, hook, arrived, patience_s)


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
        models = [it["id"] for it in client.call("GET", "/v1/models")["data"]]
        steps.saw("models", ", ".join(models) or "none")
        if MODEL not in models:
            steps.saw("chat", f"left out: there is no model {MODEL!r} for this tenant")
            return
    with steps.step("A chat answer streams"):
        began, first, chunks = time.monotonic(), 0.0, []
        for chunk in _stream(client):
            first = first or time.monotonic() - began
            chunks.append(chunk)
        if not chunks:
            raise StepError("the stream brought no chunk")
        steps.saw("first", f"after {first * 1000:.0f} ms, {len(chunks)} chunks in all")
        steps.saw("answer", "".join(chunks))


def _stream(client: Client) -> Iterator[str]:
    """Yield the text of each chunk as it comes. Raises StepError."""
    messages = [{"role": "user", "content": QUESTION}]
    body = {"model": MODEL, "messages": messages, "stream": True}
    for line in client.lines("/v2/chat/completions", json=body):
        if not line.startswith(b"data: "):
            continue
        chunk = orjson.loads(line.removeprefix(b"data: "))
        if "error" in chunk or "detail" in chunk:
            raise StepError(f"the stream broke off: {chunk}")
        for choice in chunk.get("choices", ()):
            if text := choice.get("delta", {}).get("content"):
                yield text


def _ingest(
    steps: Steps, client: Client, hook: str, arrived: Arrived, patience_s: float
) -> None:
    with _subscription(steps, client, hook) as secret:
        text = f"# Notes\n\nWritten by a demonstration, {uuid4().hex}."
        with steps.step("A document is ingested"):
            made = client.call("POST", "/v1/ingest", expect=201, json={"text": text})
            steps.saw("document", made["document_id"])
        try:
            with steps.step(f"{INGEST_COMPLETED} arrives, and its signature holds"):
                received = next_verified(arrived, secret=secret, patience_s=patience_s)
                if received.json()["data"] != made:
                    raise StepError("the event tells of another document")
                steps.saw("event", received.event_id)
                steps.saw("signature", received.headers["x-gateway-signature"])
        finally:
            Document.objects.filter(public_id=made["document_id"]).delete()


@contextmanager
def _subscription(steps: Steps, client: Client, hook: str) -> Iterator[str]:
    """Subscribe for the time of the demonstration; yield the secret."""
    with steps.step(f"A tenant's subscription to {INGEST_COMPLETED} is created"):
        body = {"url": hook, "event_types": [INGEST_COMPLETED]}
        made = client.call("POST", SUBSCRIPTIONS, expect=201, json=body)
        steps.saw("id", made["id"])
    path = f"{SUBSCRIPTIONS}/{made['id']}"
    try:
        yield made["secret"]
    except BaseException:
        with suppress(StepError):
            client.answer("DELETE", path)
        raise
    with steps.step("The subscription is deleted"):
        if (status := client.answer("DELETE", path).status_code) != 204:
            raise StepError(f"DELETE {path} answered {status}")
