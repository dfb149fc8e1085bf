"""Calls made up from the OpenAPI document: operators' addresses keep to it."""

from __future__ import annotations

import pytest
from schemathesis.checks import not_a_server_error

from tests.fuzzing import DESCRIBED, assert_as_described, bounded

OURS = DESCRIBED.include(path_regex=r"^/(healthz|readyz|metrics|openapi.json)")


@pytest.mark.django_db(transaction=True)
@OURS.parametrize()
@bounded
def test_a_response_is_as_documented(case):
    # Nothing delivers beside a test, and `?all` says so.
    assert_as_described(case, beside=[not_a_server_error])
