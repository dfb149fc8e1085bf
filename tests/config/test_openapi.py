"""The OpenAPI document as a whole: nothing is missing, and operators' addresses keep to it."""

from __future__ import annotations

import pytest
from django.urls import get_resolver
from schemathesis.checks import not_a_server_error

from config.health import CHECKS
from tests.fuzzing import DESCRIBED, DOCUMENT, assert_as_described, bounded

OURS = DESCRIBED.include(path_regex=r"^/(healthz|readyz|metrics|openapi.json)")
# Pages for people, and GraphQL, which describes itself.
NOT_DESCRIBED = ("accounts/", "admin/", "docs", "graphql")


def test_every_address_for_programs_is_described():
    described = {path.replace("{", "<").replace("}", ">") for path in DOCUMENT["paths"]}
    mapped = {
        "/" + str(it.pattern).replace("<str:", "<").replace("<path:", "<")
        for it in get_resolver().url_patterns
        if str(it.pattern) and not str(it.pattern).startswith(NOT_DESCRIBED)
    }
    assert mapped == described


def test_every_operation_has_a_name_of_its_own_and_a_tag():
    operations = [it for path in DOCUMENT["paths"].values() for it in path.values()]
    names = {it["operationId"] for it in operations}
    assert len(names) == len(operations)
    assert all(it["tags"] and it["summary"] for it in operations)


def test_readiness_names_every_check():
    answers = DOCUMENT["paths"]["/readyz"]["get"]["responses"]
    for answer in answers.values():
        schema = answer["content"]["application/json"]["schema"]
        assert schema["properties"]["checks"]["required"] == [*CHECKS]


@pytest.mark.django_db(transaction=True)
@OURS.parametrize()
@bounded
def test_an_answer_is_as_described(case):
    # Nothing delivers beside a test, and `?all` says so.
    assert_as_described(case, beside=[not_a_server_error])
