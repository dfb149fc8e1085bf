"""Celery on Redis with gevent, without Django: `celery -A … worker --pool gevent`.

To queue, run it as `python -m benchmarks.deliveries.peers.celery_gevent queue URL COUNT`.
"""

from __future__ import annotations

import os
import sys

import requests
from celery import Celery
from requests.adapters import HTTPAdapter

from benchmarks.deliveries.peers import events
from benchmarks.deliveries.peers.signing import headers_of

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
def deliver(job: str) -> None:
    url, event_id, body = events.unpacked(job)
    answer = session.post(url, body, headers=headers_of(event_id, body), timeout=10)
    answer.raise_for_status()


if __name__ == "__main__":
    for jobs in events.batches(sys.argv[2], int(sys.argv[3])):
        for job in jobs:
            app.send_task("deliver", [job.decode()])
