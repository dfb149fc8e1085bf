from typing import Any

import pytest
from csp import middleware as stock
from csp.constants import HEADER
from csp.decorators import csp_exempt, csp_replace, csp_update
from django.http import HttpResponse
from django.test import RequestFactory

from config.middleware import CSPMiddleware


def plain(_request):
    return HttpResponse()


def own(_request):
    return HttpResponse(headers={HEADER: "default-src 'none'"})


def nonced(request):
    return HttpResponse(str(request.csp_nonce))


VIEWS = {
    "the settings' policy": plain,
    "one more source": csp_update({"form-action": ["http://127.0.0.1:1"]})(plain),
    "another source": csp_replace({"img-src": ["https://img.example"]})(plain),
    "none": csp_exempt()(plain),
    "one that the view wrote": own,
    "a nonce that is not in the policy": nonced,
}


def directives(middleware, view):
    """Return the policy that a view is answered with; the order of its parts means nothing."""
    response = middleware(view)(RequestFactory().get("/"))
    return sorted(response.headers.get(HEADER, "").split("; "))


@pytest.mark.parametrize("name", VIEWS)
def test_the_policy_is_the_one_that_django_csp_would_send(name):
    expected = directives(stock.CSPMiddleware, VIEWS[name])
    assert directives(CSPMiddleware, VIEWS[name]) == expected


def test_one_answer_never_changes_the_policy_of_the_next():
    middleware = CSPMiddleware(lambda request: VIEWS[request.path[1:]](request))

    def policy(name: str) -> str:
        response: Any = middleware(RequestFactory().get(f"/{name}"))
        return str(response.headers[HEADER])

    before = policy("the settings' policy")
    assert policy("one more source") != before
    assert policy("the settings' policy") == before
