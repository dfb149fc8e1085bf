"""Which product's format an error outside the views has."""

import re

import pytest

from catalog import views as catalog
from config import errors
from gateway import errors as gateway
from gateway.chat import views as chat
from gateway.chat.urls import urlpatterns as chat_urls
from gateway.urls import urlpatterns as gateway_urls
from recording import errors as recording


@pytest.mark.parametrize(
    ("path", "responder"),
    [
        ("/v1", recording.HANDLER.response_for),
        ("//v1//nothing/", recording.HANDLER.response_for),
        ("/v1/webhooks/subscriptions", gateway.HANDLER.response_for),
        ("/v1/webhooks/subscriptions/a/b/c", gateway.HANDLER.response_for),
        ("/v1/webhooks/subscriptionsX", recording.HANDLER.response_for),
        ("/v2/anything", chat.response_for),
        ("/graphql/", catalog.response_for),
        ("/v1x", None),
        ("/", None),
        ("*", None),
    ],
)
def test_the_longest_prefix_decides(path, responder):
    assert errors.owner(path) == responder


@pytest.mark.parametrize(
    "address", [str(each.pattern) for each in (*chat_urls, *gateway_urls)]
)
def test_an_error_below_an_address_of_the_gateway_has_its_format(address):
    start = re.split(r"[<(?\\$]", address.removeprefix("^"))[0]
    responders = (gateway.HANDLER.response_for, chat.response_for, None)
    assert errors.owner(f"/{start.rstrip('/')}/nothing") in responders
