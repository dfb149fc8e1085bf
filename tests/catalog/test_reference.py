"""The answers of the catalogue are those of plain graphql-core with naive resolvers.

A long search: `pytest --hypothesis-profile=long --timeout=0 tests/catalog/test_reference.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, event, given
from hypothesis import settings as example_settings

from catalog.execution.context import Context
from catalog.execution.limits import Budget
from catalog.execution.operations import Executor, GraphQLRequest
from catalog.models import Author, Book, Category
from catalog.schema.contract import schema
from tests.catalog import reference
from tests.catalog.documents import documents
from tests.catalog.factories import number_on

EXAMPLES = 3_000 if example_settings.get_current_profile_name() == "long" else 150
searched = example_settings(
    max_examples=EXAMPLES,
    deadline=None,
    # A failure of a long search is worth minutes of shrinking; in CI it is not.
    phases=set(Phase) - {Phase.explain} if EXAMPLES > 150 else {Phase.generate},
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
        HealthCheck.filter_too_much,
    ],
)
executor = Executor(schema.graphql_schema)


def state() -> list[Any]:
    return [
        list(model.objects.order_by("pk").values_list())
        for model in (Author, Category, Book)
    ]


def rolled_back(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a call and the rows after it; then roll back."""
    number_on()  # a rollback keeps the sequences
    with transaction.atomic():
        result = call(*arguments), state()
        transaction.set_rollback(True)
    return result


def product(query, operation, variables, limit=10**9):
    context = Context(budget=Budget(limit))
    body = executor.answer(GraphQLRequest(query, operation, variables), context).body
    body = orjson.loads(orjson.dumps(body))
    errors = [
        {"path": error.get("path"), "extensions": error["extensions"]}
        for error in body.get("errors", [])
    ]
    return body.get("data"), errors


def sorted_errors(errors):
    return sorted(errors, key=repr)


def lift(data, errors, refusals):
    """Make what fails for each row one error of the field of Query: which one, is not determined."""
    for path in {error["path"][0] for error in refusals if len(error["path"]) > 1}:
        data[path] = None
        possible = [each for each in refusals if each["path"][0] == path]
        [error] = [each for each in errors if each["path"] == [path]]
        assert error["extensions"] in [each["extensions"] for each in possible]
        errors = [each for each in errors if each is not error]
        refusals = [each for each in refusals if each not in possible]
    return errors, refusals


def codes(errors):
    return {error["extensions"]["code"] for error in errors}


@pytest.mark.slow
@pytest.mark.timeout(0 if EXAMPLES > 150 else 900)
def test_any_document_is_answered_as_the_reference_answers_it(shelf):
    outcomes: Counter[str] = Counter()

    @searched
    @given(document=documents())
    def compare(document):
        (data, errors), after = rolled_back(product, *document)
        outcomes["executed"] += bool(data)
        outcomes["faultless"] += not errors
        outcomes.update(codes(errors))
        event(f"codes: {sorted(codes(errors)) or 'none'}")
        if "QUERY_TOO_COMPLEX" in codes(errors):  # of the document, or of a filter
            assert data is None or None in data.values()
            return
        (expected, refusals, rows), state_after = rolled_back(
            reference.answer, *document
        )
        if not refusals and rows:
            outcomes["counted"] += 1
            check_that_each_row_counts(document, rows)
        if any(len(error["path"] or ()) > 1 for error in refusals):
            event("an argument within rows")
            if after != state_after:
                return  # a mutation, which the reference does not undo
            errors, refusals = lift(expected, errors, refusals)
        assert data == expected
        assert list(data or {}) == list(expected or {})
        assert sorted_errors(errors) == sorted_errors(refusals)
        assert after == state_after

    compare()
    # Most random documents are executed.
    assert outcomes["executed"] > 40
    assert min(outcomes["faultless"], outcomes["counted"]) > 25
    assert {"BAD_USER_INPUT", "GRAPHQL_VALIDATION_FAILED"} <= outcomes.keys()


def check_that_each_row_counts(document, rows):
    (_, at_limit), _ = rolled_back(product, *document, rows)
    (_, below_limit), _ = rolled_back(product, *document, rows - 1)
    if codes(at_limit) != {"QUERY_TOO_COMPLEX"}:
        assert not at_limit
        assert codes(below_limit) == {"RESULT_TOO_LARGE"}
