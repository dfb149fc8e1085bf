"""Whatever fits or breaks the OpenAPI document is answered as the document says."""

from __future__ import annotations

import socket

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from schemathesis.specs.openapi import checks

from tests.recording.test_openapi import DOCUMENT

DESCRIBED = schemathesis.openapi.from_dict(DOCUMENT)
DESCRIBED.app = get_wsgi_application()
OURS = DESCRIBED.include(path_regex=r"^/v1/webhook(?!s/subscriptions)")

# A url is more than a string, an unknown parameter is ignored, and the token here is right.
BESIDE_THE_POINT = [
    checks.positive_data_acceptance,
    checks.negative_data_rejection,
    checks.ignored_auth,
]


@pytest.fixture
def no_resolver(monkeypatch) -> None:
    public = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: public)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_resolver")
@OURS.parametrize()
@hypothesis_settings(
    max_examples=30, deadline=None, suppress_health_check=list(HealthCheck)
)
def test_an_answer_is_one_of_those_described(api, case):
    headers = {"Authorization": f"Bearer {api.token}"}
    answer = case.call(base_url="http://localhost", headers=headers)
    assert answer.status_code < 500
    case.validate_response(answer, excluded_checks=BESIDE_THE_POINT)
