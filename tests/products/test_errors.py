"""The shape of every error, and the order in which faults are reported."""

import pytest
from django.db import InterfaceError, OperationalError
from django.test import Client
from redis.exceptions import ConnectionError as RedisConnectionError

from gateway import errors as gateway
from recording import errors as recording
from tests.documented import DOCUMENT, assert_valid
from tests.products.product import RECORDING, URL
from webhooks_core.api.subscriptions import SubscriptionService

pytestmark = pytest.mark.django_db

HANDLERS = {"recording": recording.HANDLER, "gateway": gateway.HANDLER}


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "x", "*/*;q=0"])
@pytest.mark.spec("recording", "Accept is ignored")
def test_accept_and_format_do_not_matter(product, mine, accept):
    headers = {"Accept": accept}
    if product is RECORDING:
        headers["Authorization"] = f"Bearer {mine.api.token}"
    response = mine.call("GET", "?format=xml", headers=headers)
    assert (response.status_code, response["Content-Type"]) == (200, "application/json")


# ── Our own faults ──────────────────────────────────────────────────────────────────


def fail_with(monkeypatch, error):
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(SubscriptionService, "listed", fail)


@pytest.mark.parametrize(
    "kind", [OperationalError, InterfaceError, RedisConnectionError]
)
@pytest.mark.spec("recording", "503 unavailable with Retry-After")
def test_a_service_that_is_away_is_503_and_logged(
    product, mine, monkeypatch, caplog, kind
):
    fail_with(monkeypatch, kind("could not connect to 10.0.0.5"))
    response = mine.call("GET")
    assert "10.0.0.5" not in product.error(response, 503)
    assert int(response["Retry-After"]) > 0
    assert "dependency unavailable" in caplog.text


@pytest.mark.spec("recording", "500 internal, no detail leaks")
def test_the_unforeseen_is_500_and_leaks_nothing(product, mine, monkeypatch, caplog):
    fail_with(monkeypatch, RuntimeError("the secret is whsec_abc"))
    response = mine.call("GET")
    assert product.error(response, 500) == "Something went wrong on our side."
    assert response["X-Request-Id"]
    assert "whsec_abc" in caplog.text


@pytest.mark.parametrize("kind", [OperationalError, RuntimeError])
def test_a_failure_in_the_middle_of_a_write_leaves_nothing(mine, monkeypatch, kind):
    def fail(*_args: object, **_options: object) -> None:
        raise kind("boom")

    monkeypatch.setattr("webhooks_core.endpoints.EndpointQueue.objects.create", fail)
    assert mine.call("POST", "", {"url": URL}).status_code in {500, 503}
    assert not mine.endpoints.exists()


@pytest.mark.parametrize(
    ("error", "status"), [(RuntimeError("x"), 500), (OperationalError("x"), 503)]
)
def test_a_crash_before_the_view_has_the_shape_too(
    product, monkeypatch, settings, error, status
):
    monkeypatch.setattr(Broken, "error", error)
    settings.MIDDLEWARE = [f"{__name__}.Broken"]
    client = Client(raise_request_exception=False)
    product.error(client.get(product.path), status)
    assert client.get("/nothing")["Content-Type"].startswith("text/html")


class Broken:
    """A middleware that fails."""

    error: Exception = RuntimeError("x")

    def __init__(self, get_response) -> None:
        pass

    def __call__(self, request) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("name", "status"),
    [(name, status) for name, handler in HANDLERS.items() for status in handler.kinds],
)
def test_every_kind_has_a_status_and_a_sentence_of_its_own(name, status):
    error = HANDLERS[name].kinds[status]()
    schema = DOCUMENT["components"]["schemas"][f"{name.title()}Error"]
    assert_valid(HANDLERS[name].body(error), schema)
    assert error.status_code == status
    assert error.detail[0].isupper()
    assert error.detail[-1] in ".>"
    assert "\n" not in error.detail


@pytest.mark.spec("recording", "errors: HTTP status and code")
def test_the_codes_are_those_of_the_spec():
    assert RECORDING.codes == recording.CODES
    assert recording.CODES.keys() == recording.ERRORS.keys()
