"""What the benchmark puts into queues whose jobs carry the event: not counted as code of a user."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator

AT_ONCE = 500


def batches(url: str, count: int) -> Iterator[list[bytes]]:
    """Return jobs for events of 1 KB, some at a time."""
    text = secrets.token_urlsafe(640)
    for start in range(0, count, AT_ONCE):
        yield [_job(url, text) for _ in range(min(AT_ONCE, count - start))]


def _job(url: str, text: str) -> bytes:
    event = {"id": f"evt_{secrets.token_hex(12)}", "data": {"text": text}}
    body = json.dumps(event | {"type": "ingest.completed"})
    return json.dumps([url, event["id"], body]).encode()


def unpacked(job: bytes | str) -> tuple[str, str, bytes]:
    """Return the URL, the id and the body of a job."""
    url, event_id, body = json.loads(job)
    return url, event_id, body.encode()
