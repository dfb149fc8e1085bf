"""Calls made up from the OpenAPI document, and what their answers must keep to.

In the suite the calls are the same every time and few. A search of its own:
`FUZZ_EXAMPLES=2000 make test-all ARGS='-k as_documented'`.
"""

import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, settings
from schemathesis.checks import CheckFunction
from schemathesis.specs.openapi import checks

from tests.documented import DOCUMENT

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "0"))
# Stands for an object that exists, wherever an id is asked for.
EXISTING = "the-one-that-exists"


def _with_existing(document: Any) -> Any:
    for operations in document["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                if parameter["name"].endswith("_id") and parameter["in"] == "path":
                    ids = [{"const": EXISTING}, parameter["schema"]]
                    parameter["schema"] = {"anyOf": ids}
    return document


DESCRIBED = schemathesis.openapi.from_dict(_with_existing(deepcopy(DOCUMENT)))
DESCRIBED.app = get_wsgi_application()

# A url is more than a string, an unknown parameter is ignored, and the caller here is known.
BESIDE_THE_POINT = [
    checks.positive_data_acceptance,
    checks.negative_data_rejection,
    checks.ignored_auth,
]

bounded = settings(
    max_examples=EXAMPLES or 12,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def assert_as_described(
    case,
    *,
    existing: Callable[[], str] = str,
    beside: Sequence[CheckFunction] = (),
    **call: Any,
) -> None:
    """Send a call; its answer has a described status, media type and shape, and is no 5xx.

    `existing` makes the object that some calls are for; `beside` are checks that do not hold.
    """
    for name, value in (case.path_parameters or {}).items():
        if value == EXISTING:
            case.path_parameters[name] = existing()
    answer = case.call(**{"base_url": "http://localhost"} | call)
    case.validate_response(answer, excluded_checks=[*BESIDE_THE_POINT, *beside])
