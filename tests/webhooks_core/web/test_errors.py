"""The statuses of exceptions, also without the package's extra `redis`."""

import subprocess
import sys
from errno import ENOSPC

import pytest
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.db import OperationalError
from django.http import Http404
from django.http.request import UnreadablePostError
from redis.exceptions import TimeoutError as RedisTimeoutError
from rest_framework import exceptions

from webhooks_core.web.errors import Failure, failure_of

PROGRAM = """
import sys
sys.modules["redis"] = sys.modules["redis.exceptions"] = None
from django.conf import settings
settings.configure()
from django.db import OperationalError
from webhooks_core.web import errors, fields, pages, views
print(errors.failure_of(OperationalError()).status)
"""
AWAY = Failure(503, headers={"Retry-After": "5"})


def test_an_outage_is_a_503_without_redis_too():
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stdout == "503\n", run.stderr


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
        (UnreadablePostError(ENOSPC, "x"), AWAY),
        (OperationalError(), AWAY),
        (RedisTimeoutError(), AWAY),
        (exceptions.PermissionDenied(), None),
        (RuntimeError(), None),
    ],
)
def test_an_exception_means_a_status_and_a_message(error, failure):
    assert failure_of(error) == failure
