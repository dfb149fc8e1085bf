"""An account that looks at the pages of its webhooks, and what it and others have."""

from dataclasses import dataclass
from typing import Any

import pytest
from allauth.account.authentication import AUTHENTICATION_METHODS_SESSION_KEY
from django.contrib.auth.models import User
from django.test import Client

from tests.factories import UserFactory
from tests.webhooks_core.engine import dispatch
from webhooks_core import endpoints
from webhooks_core.changes import Actor
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.publishing import publish

BASE = "/accounts/webhooks"
NOWHERE = "http://127.0.0.1:9/hook"
TYPE = "summary.completed"


@dataclass
class Person:
    """An account, and the browser in which it has just logged in."""

    account: User
    browser: Client

    @property
    def owner(self) -> str:
        return str(self.account.pk)

    @property
    def by(self) -> Actor:
        return Actor("owner", self.account.get_username())

    def endpoint(self, url: str = NOWHERE, **fields: Any) -> Endpoint:
        mine: dict[str, Any] = {"profile": "recording", "owner": self.owner}
        mine |= {"event_types": [TYPE]}
        return endpoints.create(url=url, **mine | fields).endpoint

    def publish(self, **data: Any) -> Event:
        return publish(
            profile="recording",
            owner=self.owner,
            event_type=TYPE,
            data={"audio_id": "aud_1"} | data,
        )

    def delivery(self, endpoint: Endpoint, **data: Any) -> Delivery:
        """Publish an event, and return its delivery to an endpoint."""
        event = self.publish(**data)
        return Delivery.objects.get(event=event, endpoint=endpoint)

    def attempted(self, endpoint: Endpoint, **data: Any) -> Delivery:
        """As `delivery`, after its first attempt."""
        delivery = self.delivery(endpoint, **data)
        dispatch()
        delivery.refresh_from_db()
        return delivery

    def make_old(self) -> None:
        """Let the login of the browser be older than ten minutes."""
        session = self.browser.session
        for record in session[AUTHENTICATION_METHODS_SESSION_KEY]:
            record["at"] = 0
        session.save()

    def page(self, path: str = "", status: int = 200) -> str:
        response = self.browser.get(f"{BASE}{path}")
        assert response.status_code == status, response.content
        return str(response.content.decode())

    def post(self, path: str = "", code: int = 200, **data: Any) -> str:
        """Send a form, and return the page that it leads to."""
        response = self.browser.post(f"{BASE}{path}", data, follow=True)
        assert response.status_code == code, response.content
        return str(response.content.decode())


def person_named(name: str) -> Person:
    account = UserFactory.create(username=name, password="a-long-password")
    browser = Client()
    browser.post("/accounts/login/", {"login": name, "password": "a-long-password"})
    return Person(account, browser)


@pytest.fixture
def ada(db) -> Person:
    return person_named("ada")


@pytest.fixture
def mallory(db) -> Person:
    return person_named("mallory")
