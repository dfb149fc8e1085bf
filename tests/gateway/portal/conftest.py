"""People of a tenant who have opened a link to its portal, each in a browser of their own."""

import re
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from gateway.event_types import INGEST_COMPLETED
from gateway.models import PortalLink
from gateway.portal import links
from webhooks_core import endpoints
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.publishing import publish

BASE, ORIGIN = "/portal", "http://testserver"
NOWHERE = "http://127.0.0.1:9/hook"
EVERYTHING = list(links.CAPABILITIES)
FORM_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')


def browser() -> Client:
    return Client(headers={"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin"})


def path_of(created: links.Created) -> str:
    return created.url.removeprefix("http://127.0.0.1:8000")


def new_link(tenant: str = "acme", **fields: Any) -> links.Created:
    values = {"capabilities": EVERYTHING, "actor": "Grace"} | fields
    return links.create(tenant=tenant, principal="ada", **values)


def token_of(page: Any) -> str:
    """Return the token of a page's forms."""
    token = FORM_TOKEN.search(page.content.decode())
    return token[1] if token else ""


def press(client: Client, path: str) -> Any:
    """Look at the page of a link, and press its button."""
    client.get(path)
    return client.post(path)


@dataclass
class Visitor:
    """A person in the portal of a tenant."""

    link: PortalLink
    browser: Client
    form_token: str

    def get(self, path: str = "", status: int = 200) -> str:
        response = self.browser.get(f"{BASE}{path}")
        assert response.status_code == status, response.content.decode()
        return str(response.content.decode())

    def send(self, path: str, **data: Any) -> Any:
        data = {"csrfmiddlewaretoken": self.form_token} | data
        return self.browser.post(f"{BASE}{path}", data)

    def post(self, path: str, status: int = 200, **data: Any) -> str:
        """Send a form, and return the page that it leads to."""
        response = self.send(path, **data)
        if response.status_code == 302:
            response = self.browser.get(response["Location"])
        assert response.status_code == status, response.content.decode()
        return str(response.content.decode())


def visit(created: links.Created) -> Visitor:
    client = browser()
    opened = press(client, path_of(created))
    assert opened.status_code == 302, opened.content
    token = token_of(client.get(f"{BASE}/add"))
    created.link.refresh_from_db()
    return Visitor(created.link, client, token)


def endpoint_of(tenant: str = "acme", url: str = NOWHERE, **fields: Any) -> Endpoint:
    return endpoints.create(
        profile="gateway", owner=tenant, url=url, event_types=[], **fields
    ).endpoint


def event_of(tenant: str = "acme", **data: Any) -> Event:
    return publish(
        profile="gateway",
        owner=tenant,
        event_type=INGEST_COMPLETED,
        data=data,
        metadata={"request_id": "r", "principal_id": "p", "trace_id": "t"},
    )


def delivery_of(endpoint: Endpoint, **data: Any) -> Delivery:
    """Publish an event of the endpoint's owner; return the delivery to the endpoint."""
    return Delivery.objects.get(
        event=event_of(endpoint.owner, **data), endpoint=endpoint
    )


@pytest.fixture
def grace(db) -> Visitor:
    """Who may do everything at acme."""
    return visit(new_link())
