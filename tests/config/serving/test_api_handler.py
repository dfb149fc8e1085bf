"""The addresses of APIs answer alike with and without the middleware of pages."""

import json

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import DisallowedHost
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.test import Client, RequestFactory
from django.urls import URLPattern, URLResolver, get_resolver

from config import wsgi
from config.serving import middleware_checks
from config.wsgi import API_PATHS
from recording.accounts import personal_tokens

pytestmark = pytest.mark.django_db

QUERY = {"query": "{ getBookById(id: 1) { id } }"}
CHANGE = {"query": 'mutation { addCategory(category: {name: "a"}) { name } }'}
CASES = [
    ("POST", "/graphql", {"data": QUERY}),
    ("POST", "/graphql", {"data": CHANGE}),
    ("POST", "/graphql", {"data": QUERY, "HTTP_CONTENT_ENCODING": "gzip"}),
    ("POST", "/graphql", {"data": QUERY, "HTTP_ORIGIN": "https://other.example"}),
    ("GET", "/graphql", {"HTTP_ACCEPT": "text/html"}),
    ("OPTIONS", "/graphql", {}),
    ("GET", "/v1/webhooks", {}),
    ("GET", "/v1/webhooks", {"token": True}),
    ("GET", "/v1/webhooks", {"HTTP_HOST": "elsewhere.example"}),
    ("POST", "/v1/webhooks", {"data": {"url": "no"}, "token": True}),
    ("GET", "/v1/usage", {}),
    ("POST", "/v1/ingest", {"data": {}}),
]  # fmt: skip


@pytest.fixture(autouse=True)
def one_connection():
    """Keep the connection with the rows of the test, as Django's test client does."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.fixture
def client_headers():
    """The session of a signed-in user, and a token of the same user."""
    user = User.objects.create_superuser("root", password="x")
    client = Client()
    client.force_login(user)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    token = personal_tokens.create(user=user, days=30).text
    return f"{settings.SESSION_COOKIE_NAME}={cookie}", f"Bearer {token}"


def answered(handler, method, path, headers):
    """Return the status, the headers and the body; without the id of the request."""
    data, seen = headers.get("data"), []
    sent = json.dumps(data) if data is not None else ""
    extra = {k: v for k, v in headers.items() if k.isupper()}
    request = RequestFactory().generic(method, path, sent, "application/json", **extra)
    response = handler(request.environ, lambda *head: seen.append(head))
    body = b"".join(response)
    response.close()
    status, pairs = seen[0]
    return status, sorted(pair for pair in pairs if pair[0] != "X-Request-Id"), body


@pytest.mark.parametrize("signed_in", [False, True])
@pytest.mark.parametrize(("method", "path", "headers"), CASES)
def test_an_api_needs_no_middleware_of_pages(
    client_headers, method, path, headers, signed_in
):
    cookie, token = client_headers
    headers = dict(headers)
    if signed_in:
        headers["HTTP_COOKIE"] = cookie
    if headers.pop("token", False):
        headers["HTTP_AUTHORIZATION"] = token
    long_way = answered(wsgi.pages, method, path, headers)
    short_way = answered(wsgi.api, method, path, headers)
    assert short_way == long_way


def views(patterns, prefix=""):
    """Yield each address of the URL map with its view."""
    for each in patterns:
        route = prefix + str(each.pattern).lstrip("^")
        if isinstance(each, URLResolver):
            yield from views(each.url_patterns, route)
        elif isinstance(each, URLPattern):
            yield f"/{route}", each.callback


def test_every_api_is_exempt_from_what_pages_need():
    apis = [
        view
        for route, view in views(get_resolver().url_patterns)
        if route.startswith(API_PATHS)
    ]
    assert len(apis) > 10
    assert all(getattr(view, "csrf_exempt", False) for view in apis)


@pytest.mark.parametrize(
    "allowed",
    [
        ["signpost.example"],
        [".example"],
        ["*"],
        ["[::1]", "127.0.0.1"],
        [],
        ["UPPER.example"],
    ],
)
def test_chat_reads_allowed_hosts_as_django_does(settings, allowed):
    settings.ALLOWED_HOSTS = allowed
    for host in (
        "signpost.example", "SIGNPOST.example:443", "signpost.example.", "example",
        "a.b.example", "xexample", "[::1]", "[::1]:8000", "::1", "127.0.0.1:80",
        "upper.example", "signpost.example:port", "a b", "", "signpost.example/x",
        "signpost.example@evil", "évil", "signpost.example,signpost.example",
    ):  # fmt: skip
        request = RequestFactory().get("/", headers={"Host": host})
        try:
            request.get_host()
            expected = True
        except DisallowedHost:
            expected = False
        added = middleware_checks.security_headers({"host": host}, "http")
        passes = added is not None
        assert (host, passes) == (host, expected)
