"""Celery on Redis with gevent, without Django: `celery -A … worker --pool gevent`.

To queue, run it as `python -m benchmarks.deliveries.peers.celery_gevent queue URL COUNT`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import secrets
import sys
import time

import requests
from celery import Celery
from requests.adapters import HTTPAdapter

SECRET = b"whsec_" + b"bench" * 8
name = os.environ["BENCH_NAME"]
app = Celery(
    "benchmarks.deliveries.peers.celery_gevent", broker=os.environ["REDIS_URL"]
)
app.conf.update(
    task_default_queue=name,
    broker_transport_options={"global_keyprefix": f"{name}:"},
    broker_connection_retry_on_startup=True,
    task_ignore_result=True,
    task_acks_late=True,  # a killed worker's tasks are not lost
    worker_prefetch_multiplier=4,
    worker_hijack_root_logger=False,
)
session = requests.Session()
session.trust_env = False
session.mount("http://", HTTPAdapter(pool_connections=1, pool_maxsize=256))


@app.task(
    name="deliver", autoretry_for=(requests.RequestException,), retry_backoff=True
)  # type: ignore[untyped-decorator,unused-ignore]
def deliver(url: str, event_id: str, body: str) -> None:
    now = int(time.time())
    digest = hmac.digest(SECRET, f"{event_id}.{now}.{body}".encode(), hashlib.sha256)
    headers = {
        "Content-Type": "application/json",
        "webhook-id": event_id,
        "webhook-timestamp": str(now),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }
    session.post(url, body.encode(), headers=headers, timeout=10).raise_for_status()


if __name__ == "__main__":
    text = secrets.token_urlsafe(640)
    for _ in range(int(sys.argv[3])):
        event = {"id": f"evt_{secrets.token_hex(12)}", "data": {"text": text}}
        app.send_task("deliver", [sys.argv[2], event["id"], json.dumps(event)])
