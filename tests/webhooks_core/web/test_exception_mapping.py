"""The mapping of exceptions works with and without the package's extra `redis`."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
if sys.argv[1] == "without":
    sys.modules["redis"] = sys.modules["redis.exceptions"] = None
from django.conf import settings
settings.configure()
from django.db import OperationalError
from webhooks_core.web import errors, exception_mapping, fields, pages, views
print(exception_mapping.failure_of(OperationalError()).status)
if sys.argv[1] == "with":
    from redis.exceptions import TimeoutError
    print(exception_mapping.failure_of(TimeoutError()).status)
"""


@pytest.mark.parametrize(
    ("redis", "statuses"), [("with", "503503"), ("without", "503")]
)
def test_an_outage_is_a_503_with_and_without_redis(redis, statuses):
    command = [sys.executable, "-c", PROGRAM, redis]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stdout.replace("\n", "") == statuses, run.stderr
