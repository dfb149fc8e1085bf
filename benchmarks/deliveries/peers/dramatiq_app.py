"""dramatiq on Redis. Run as `dramatiq benchmarks.deliveries.peers.dramatiq_app`."""

from __future__ import annotations

import os

import django
import dramatiq
from django.apps import apps
from dramatiq.brokers.redis import RedisBroker

if not apps.ready:
    django.setup()

from benchmarks.deliveries.peers import naive

broker = RedisBroker(  # type: ignore[no-untyped-call,unused-ignore]
    url=os.environ["REDIS_URL"],
    namespace=os.environ["BENCH_NAME"],
)
dramatiq.set_broker(broker)

deliver = dramatiq.actor(max_retries=0)(naive.deliver)
