"""Celery on Redis. Run as `celery -A benchmarks.deliveries.peers.celery_app worker`."""

from __future__ import annotations

import os

import django
from celery import Celery
from django.apps import apps

name = os.environ["BENCH_NAME"]
app = Celery("bench", broker=os.environ["REDIS_URL"])
app.set_default()  # before django-webhook looks for one
app.conf.update(
    task_default_queue=name,
    broker_transport_options={"global_keyprefix": f"{name}:"},
    broker_connection_retry_on_startup=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=32,
    worker_hijack_root_logger=False,
)

if not apps.ready:
    django.setup()

from benchmarks.deliveries.peers import naive  # noqa: E402 - Django first

deliver = app.task(naive.deliver, name="deliver")
app.autodiscover_tasks()
