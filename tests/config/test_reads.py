"""A GET writes nothing but the last use of a token or a session, whatever it shows."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import URLPattern

from config.urls import urlpatterns
from gateway import configuration
from gateway.chat.loop_thread import LOOP_THREAD
from gateway.configuration.shapes import Configuration, WebhookSettings
from gateway.events import Origin
from recording.accounts import personal_tokens
from tests.gateway.client import PATH
from tests.gateway.client import Api as Tenant
from tests.gateway.factories import declared
from tests.recording.oauth.flows import App
from webhooks_core import endpoints, publishing
from webhooks_core.models import Delivery, Endpoint

pytestmark = pytest.mark.django_db
PAGES = "/accounts/webhooks"
READS = ("SELECT", "SAVEPOINT", "RELEASE SAVEPOINT", "PRAGMA", "EXPLAIN")
QUERY = "/graphql?query=%7BgetAllBooks%7Bid%7D%7D"


def fixed_addresses() -> Iterator[str]:
    """Yield the addresses of the site without parameters, and the lists of the admin."""
    for entry in urlpatterns:
        if isinstance(entry, URLPattern) and "<" not in (path := str(entry.pattern)):
            yield f"/{path}"
    yield "/admin/"
    for model in admin.site._registry:
        yield f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
    yield from ("/v1/models", "/v1/usage", QUERY)


def of_an_account(account: User) -> Iterator[str]:
    """Yield the addresses of what an account, and the tenant acme, have."""
    yield "/v1/webhooks"
    for page in ("", "/add", "/deliveries", "/deliveries?show=all"):
        yield f"{PAGES}{page}"
    yield "/v1/webhook-events/samples?event=summary.completed"
    for endpoint in Endpoint.objects.all():
        mine = PATH if endpoint.profile == "gateway" else "/v1/webhooks"
        yield mine
        yield f"{mine}/{endpoint.public_id}"
        yield f"{mine}/{endpoint.public_id}/deliveries"
        yield f"/admin/webhooks_core/endpoint/{endpoint.pk}/change/"
        yield f"{PAGES}/endpoints/{endpoint.public_id}"
        yield f"{PAGES}/endpoints/{endpoint.public_id}/secret"
    for delivery in Delivery.objects.all():
        yield f"/admin/webhooks_core/delivery/{delivery.pk}/change/"
        yield f"{PAGES}/deliveries/{delivery.public_id}"
        yield f"{PAGES}/deliveries/{delivery.public_id}/body"
    yield f"/admin/auth/user/{account.pk}/change/"


@pytest.fixture
def account(monkeypatch) -> Iterator[User]:
    account = User.objects.create_superuser("ada")
    for profile, owner, kind in (
        ("recording", str(account.pk), "summary.completed"),
        ("gateway", "acme", "ingest.completed"),
    ):
        mine: Any = {"profile": profile, "owner": owner}
        endpoints.create(**mine, url="https://93.184.216.34/", event_types=[kind])
        publishing.publish(
            **mine, event_type=kind, data={}, metadata=Origin.system("acme").metadata
        )
    # A list that no start has written yet.
    listed = Configuration(WebhookSettings(subscriptions=(declared(),)))
    monkeypatch.setattr(configuration, "current", lambda: listed)
    yield account
    LOOP_THREAD.stop()  # the views have started it


@pytest.fixture
def clients(account) -> list[Client]:
    browser = Client(raise_request_exception=False)
    browser.force_login(account)
    token = personal_tokens.create(user=account, days=30).text
    bearer = {"Authorization": f"Bearer {token}"}
    caller = Client(headers=bearer, raise_request_exception=False)
    # Their first use, which is stored.
    browser.get("/accounts")
    caller.get("/v1/webhooks")
    return [browser, caller, Tenant(tenant="acme", principal="ada").client]


def written(client: Client, address: str) -> list[str]:
    """Return the statements of a GET that are no reads."""
    statements: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        if not sql.lstrip("( \n").upper().startswith(READS):
            statements.append(f"{address}: {sql}")
        return execute(sql, *rest)

    with connection.execute_wrapper(note):
        response = client.get(address)
    assert response.status_code != 500, address
    return statements


def test_no_page_and_no_list_writes_anything(account, clients):
    addresses = [*fixed_addresses(), *of_an_account(account)]
    browser, *callers = clients
    addresses.append(App.registered(browser).address())
    apis = [address for address in addresses if address.startswith("/v1")]
    asked = [(browser, addresses), *((caller, apis) for caller in callers)]
    for client, paths in asked:
        assert [written(client, path) for path in paths] == [[]] * len(paths)
