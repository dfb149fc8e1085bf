"""Every class of failure against each of the specification's three tables."""

from __future__ import annotations

import pytest

from gateway.chat.core.errors import (
    AFTER_FIRST_CHUNK,
    BEFORE_FIRST_CHUNK,
    SYNCHRONOUS,
    EndpointNotFoundError,
    InvalidRequestError,
    InvalidValueError,
    UnsupportedInferenceTypeError,
    UnsupportedRequestError,
    UpstreamServiceError,
    look_up,
)
from tests.gateway.chat.core.test_errors import INTERNAL, NOT_FOUND, UPSTREAM

ALL = [
    UpstreamServiceError("secret"),
    EndpointNotFoundError(),
    InvalidValueError("value"),
    InvalidRequestError("request"),
    UnsupportedRequestError("what"),
    UnsupportedInferenceTypeError("kind"),
    RuntimeError("secret"),
]


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        (
            SYNCHRONOUS,
            [
                (500, UPSTREAM),
                (404, NOT_FOUND),
                (400, "value"),
                (400, "request"),
                (400, "Endpoint does not support request: what"),
                (400, "Unsupported inference type: kind"),
                (500, INTERNAL),
            ],
        ),
        (
            BEFORE_FIRST_CHUNK,
            [
                (500, INTERNAL),
                (404, NOT_FOUND),
                (400, "value"),
                (500, INTERNAL),
                (400, "what"),
                (400, "kind"),
                (500, INTERNAL),
            ],
        ),
        (
            AFTER_FIRST_CHUNK,
            [
                (500, UPSTREAM),
                (500, INTERNAL),
                (500, INTERNAL),
                (400, "request"),
                (500, INTERNAL),
                (500, INTERNAL),
                (500, INTERNAL),
            ],
        ),
    ],
)
def test_each_class_has_its_row_in_each_table(table, rows):
    assert [look_up(table, error, "req-7") for error in ALL] == rows
