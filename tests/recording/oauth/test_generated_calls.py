"""Calls made up from the OpenAPI document: OAuth's answers keep to it."""

from __future__ import annotations

import pytest
from schemathesis.specs.openapi import checks

from tests.fuzzing import DESCRIBED, assert_as_described, bounded
from tests.recording.oauth.flows import basic

pytestmark = pytest.mark.django_db(transaction=True)

OURS = DESCRIBED.include(path_regex=r"^/(oauth|\.well-known)/")


@OURS.parametrize()
@bounded
def test_a_response_is_as_documented(case):
    # Before it looks at the method, Django wants a form's token on the page.
    is_page = case.path == "/oauth/authorize"
    assert_as_described(case, beside=[checks.unsupported_method] if is_page else ())


@DESCRIBED.include(path_regex=r"^/oauth/(token|revoke)").parametrize()
@bounded
def test_the_response_to_a_known_client_is_as_documented(confidential, case):
    credentials = {"Authorization": basic(confidential.client_id, confidential.secret)}
    assert_as_described(case, headers=credentials)
