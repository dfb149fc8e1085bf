"""The statuses of exceptions, also without the package's extra `redis`."""

from __future__ import annotations

import subprocess
import sys
from errno import ENOSPC

import pytest
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.http import Http404
from django.http.request import UnreadablePostError
from rest_framework import exceptions

from webhooks_core.web.exception_mapping import Failure, failure_of

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


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (Http404(), Failure(404)),
        (exceptions.NotFound(), Failure(404)),
        (exceptions.MethodNotAllowed("PUT"), Failure(405)),
        (exceptions.ParseError("why"), Failure(400, "why")),
        (
            exceptions.ValidationError({"a": [{"b": "why"}], "c": "x"}),
            Failure(400, "why"),
        ),
        (exceptions.UnsupportedMediaType("x"), Failure(415)),
        (exceptions.Throttled(wait=3.2), Failure(429, headers={"Retry-After": "4"})),
        (RequestDataTooBig(), Failure(413)),
        (TooManyFieldsSent(), Failure(400)),
        (UnreadablePostError(), Failure(400)),
        (UnreadablePostError(ENOSPC, "x"), Failure(503, headers={"Retry-After": "5"})),
        (exceptions.PermissionDenied(), None),
        (RuntimeError(), None),
    ],
)
def test_an_exception_means_a_status_and_a_message(error, failure):
    assert failure_of(error) == failure
